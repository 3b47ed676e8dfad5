/* The closed loops of many vehicles, LANES rows side by side (see elementary.c, which comes before this text).
 *
 * vehicle_sample, vehicle_step and vehicle_power come before this text, generated from
 * designopt_regulator.vehicle.step and the equations of motion. NX states, NM numbers of the controllers' memory, NP
 * numbers of a row; the first three states (speed, yaw rate, course) are measured. A row has the same bits beside any
 * other rows and in any number of lanes. */

#include <stdint.h>
#include <stdlib.h>

typedef struct {
  long rows, samples, substeps, step_at, load_at; /* the last two in samples */
  double h, bound;                                /* s; of speed and course, beyond which a row has diverged */
} designopt_plan;

/* Arrays, rows first. In: numbers (NP), start (NX), memory (NM), before and after (2: references of speed and course),
 * load (3: force, moment, command fed forward, from load_at on), delay (in steps), noise (2, samples) of speed and
 * course, which may be null. Out: motion (4, steps + 1) of speed, yaw rate, course and power; commands (4, samples) of
 * speed, speed before clipping, course, course before clipping; final (NX); divergence_sample, the sample at whose end
 * the row had diverged, or 0: the signals after it are not written. Returns 0 without memory. */
int designopt_vehicle(const designopt_plan *plan, const double *numbers, const double *start, const double *memory,
                      const double *before, const double *after, const double *load, const long *delay,
                      const double *noise, double *motion, double *commands, double *final, long *divergence_sample) {
  const long samples = plan->samples, substeps = plan->substeps, nodes = samples * substeps + 1;
  char *block = malloc((size_t)(2 * samples + 3) * sizeof(real));
  if (!block) return 0;
  real *forces = (real *)(block + (sizeof(real) - (uintptr_t)block % sizeof(real)) % sizeof(real));
  const real h = ALL(plan->h), bound = ALL(plan->bound), zero = ALL(0.0);
  for (long first = 0; first < plan->rows; first += LANES) {
    real row_numbers[NP], x[NX], next_x[NX], row_memory[NM], next_memory[NM], input_load[2] = {zero, zero}, power;
    real row_references[2][2], row_load[3]; /* before and after the step */
    const int lanes = plan->rows - first < LANES ? (int)(plan->rows - first) : LANES;
    long row[LANES], delay_samples[LANES], delay_steps[LANES]; /* whole samples of the delay, and further steps */
    mask running = ALL_BITS(0LL);
    for (int l = 0; l < LANES; l++) {
      const long r = row[l] = first + (l < lanes ? l : 0); /* lanes without a row repeat the first one; nothing of them is stored */
      delay_samples[l] = delay[r] / substeps, delay_steps[l] = delay[r] % substeps;
      if (l < lanes) LANE(running, l) = -1;
      if (l < lanes) divergence_sample[r] = 0;
      for (int i = 0; i < NP; i++) LANE(row_numbers[i], l) = numbers[r * NP + i];
      for (int i = 0; i < NX; i++) LANE(x[i], l) = start[r * NX + i];
      for (int i = 0; i < NM; i++) LANE(row_memory[i], l) = memory[r * NM + i];
      for (int i = 0; i < 2; i++) {
        LANE(row_references[0][i], l) = before[2 * r + i];
        LANE(row_references[1][i], l) = after[2 * r + i];
      }
      for (int i = 0; i < 3; i++) LANE(row_load[i], l) = load[3 * r + i];
    }
    const real *power_in[2] = {row_numbers, x};
    real *power_out[1] = {&power};
    forces[0] = x[3]; /* before the first command arrives, the trim forces act */
    forces[1] = x[4];
    for (long k = 0; k < samples && any(running); k++) {
      const int is_loaded = k >= plan->load_at;
      const real *references = row_references[k >= plan->step_at];
      const real reference[3] = {references[0], references[1], is_loaded ? row_load[2] : zero};
      real measurement[3] = {x[0], x[1], x[2]}, outputs[6];
      if (noise)
        for (int l = 0; l < LANES; l++) {
          LANE(measurement[0], l) += noise[2 * samples * row[l] + k];
          LANE(measurement[2], l) += noise[2 * samples * row[l] + samples + k];
        }
      const real *sample_in[4] = {row_numbers, row_memory, measurement, reference};
      real *sample_out[2] = {outputs, next_memory};
      vehicle_sample(sample_in, sample_out, 0, 0, 0);
      for (int i = 0; i < NM; i++) row_memory[i] = next_memory[i];
      for (int l = 0; l < lanes; l++)
        for (int i = 0; i < 4 && LANE(running, l); i++) commands[(4 * row[l] + i) * samples + k] = LANE(outputs[i], l);
      forces[2 * k + 2] = outputs[4];
      forces[2 * k + 3] = outputs[5];
      if (is_loaded) {
        input_load[0] = row_load[0];
        input_load[1] = row_load[1];
      }
      for (long j = 0; j < substeps; j++) {
        const long node = k * substeps + j;
        real input_command[2];
        for (int l = 0; l < LANES; l++) {
          const long sample = k - delay_samples[l] - (j < delay_steps[l]), at = sample < 0 ? 0 : 2 * (1 + sample);
          LANE(input_command[0], l) = LANE(forces[at], l);
          LANE(input_command[1], l) = LANE(forces[at + 1], l);
        }
        vehicle_power(power_in, power_out, 0, 0, 0);
        const real signals[4] = {x[0], x[1], x[2], power};
        for (int l = 0; l < lanes; l++)
          for (int i = 0; i < 4 && LANE(running, l); i++) motion[(4 * row[l] + i) * nodes + node] = LANE(signals[i], l);
        const real *step_in[5] = {row_numbers, x, input_command, input_load, &h};
        real *step_out[1] = {next_x};
        vehicle_step(step_in, step_out, 0, 0, 0);
        for (int i = 0; i < NX; i++) x[i] = choose(running, next_x[i], x[i]);
      }
      real sum = zero; /* 0, or NaN for a state that is not finite */
      for (int i = 0; i < NX; i++) sum += x[i] - x[i];
      const mask bounded = AT_MOST(magnitude(x[0]), bound) & AT_MOST(magnitude(x[2]), bound) & EQUAL(sum, zero);
      for (int l = 0; l < lanes; l++)
        if (LANE(running, l) && !LANE(bounded, l)) divergence_sample[row[l]] = k + 1;
      running &= bounded;
    }
    vehicle_power(power_in, power_out, 0, 0, 0);
    const real signals[4] = {x[0], x[1], x[2], power};
    for (int l = 0; l < lanes; l++) {
      for (int i = 0; i < 4; i++) motion[(4 * row[l] + i) * nodes + nodes - 1] = LANE(signals[i], l);
      for (int i = 0; i < NX; i++) final[row[l] * NX + i] = LANE(x[i], l);
    }
  }
  free(block);
  return 1;
}
