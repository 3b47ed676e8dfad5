/* The closed loops of many vehicles, LANES rows side by side (see elementary.c, which comes before this text).
 *
 * vehicle_sample, vehicle_step and vehicle_power come before this text, generated from
 * designopt_regulator.vehicle.step and the equations of motion. NX states, NM numbers of the controllers' memory, NP
 * numbers of a row, ND states that a measurement is made of (speed, yaw rate, course: the first three). Rows do not
 * touch each other: a row has the same bits in any company and any number of lanes. */

#include <stdint.h>
#include <stdlib.h>

typedef struct {
  long rows, samples, substeps, step_at, load_at; /* the last two in samples */
  double h, bound;                                /* s; of speed and course, beyond which a row has diverged */
} designopt_plan;

/* Arrays, rows first. In: numbers (NP), start (NX), memory (NM), before and after (2: references of speed and course),
 * load (3: force, moment, command fed forward, from load_at on), delay (in steps), noise (2, samples) of speed and
 * course, which may be null. Out: motion (4, steps + 1) of speed, yaw rate, course and power; commands (4, samples) of
 * speed, speed before clipping, course, course before clipping; final (NX); ended, the sample at whose end the row had
 * diverged, or 0: what comes after it is left as it was. Returns 0 without memory. */
int designopt_vehicle(const designopt_plan *plan, const double *numbers, const double *start, const double *memory,
                      const double *before, const double *after, const double *load, const long *delay,
                      const double *noise, double *motion, double *commands, double *final, long *ended) {
  const long samples = plan->samples, substeps = plan->substeps, nodes = samples * substeps + 1;
  char *block = malloc((size_t)(2 * samples + 3) * sizeof(real));
  if (!block) return 0;
  real *forces = (real *)(block + (sizeof(real) - (uintptr_t)block % sizeof(real)) % sizeof(real));
  const real h = ALL(plan->h), bound = ALL(plan->bound), none = ALL(0.0);
  for (long first = 0; first < plan->rows; first += LANES) {
    real n[NP], x[NX], next[NX], kept[NM], keep[NM], outside[2] = {none, none}, power;
    real wanted[2][2], loads[3]; /* before and after the step */
    const int lanes = plan->rows - first < LANES ? (int)(plan->rows - first) : LANES;
    long row[LANES], whole[LANES], part[LANES]; /* the delay in samples and steps */
    mask going = ALL_BITS(0LL);
    for (int l = 0; l < LANES; l++) {
      const long r = row[l] = first + (l < lanes ? l : 0); /* lanes without a row repeat the first one, unseen */
      whole[l] = delay[r] / substeps, part[l] = delay[r] % substeps;
      if (l < lanes) LANE(going, l) = -1;
      if (l < lanes) ended[r] = 0;
      for (int i = 0; i < NP; i++) LANE(n[i], l) = numbers[r * NP + i];
      for (int i = 0; i < NX; i++) LANE(x[i], l) = start[r * NX + i];
      for (int i = 0; i < NM; i++) LANE(kept[i], l) = memory[r * NM + i];
      for (int i = 0; i < 2; i++) LANE(wanted[0][i], l) = before[2 * r + i], LANE(wanted[1][i], l) = after[2 * r + i];
      for (int i = 0; i < 3; i++) LANE(loads[i], l) = load[3 * r + i];
    }
    const real *power_in[2] = {n, x};
    real *power_out[1] = {&power};
    forces[0] = x[3]; /* until the first command has passed the delay, the vehicle has that of trim */
    forces[1] = x[4];
    for (long k = 0; k < samples && any(going); k++) {
      const int loaded = k >= plan->load_at;
      const real *references = wanted[k >= plan->step_at];
      const real reference[3] = {references[0], references[1], loaded ? loads[2] : none};
      real seen[3] = {x[0], x[1], x[2]}, outputs[6];
      if (noise)
        for (int l = 0; l < LANES; l++) {
          LANE(seen[0], l) += noise[2 * samples * row[l] + k];
          LANE(seen[2], l) += noise[2 * samples * row[l] + samples + k];
        }
      const real *sample_in[4] = {n, kept, seen, reference};
      real *sample_out[2] = {outputs, keep};
      vehicle_sample(sample_in, sample_out, 0, 0, 0);
      for (int i = 0; i < NM; i++) kept[i] = keep[i];
      for (int l = 0; l < lanes; l++)
        for (int i = 0; i < 4 && LANE(going, l); i++) commands[(4 * row[l] + i) * samples + k] = LANE(outputs[i], l);
      forces[2 * k + 2] = outputs[4];
      forces[2 * k + 3] = outputs[5];
      if (loaded) {
        outside[0] = loads[0];
        outside[1] = loads[1];
      }
      for (long j = 0; j < substeps; j++) {
        const long node = k * substeps + j;
        real delayed[2];
        for (int l = 0; l < LANES; l++) {
          const long passed = k - whole[l] - (j < part[l]), at = passed < 0 ? 0 : 2 * (1 + passed);
          LANE(delayed[0], l) = LANE(forces[at], l);
          LANE(delayed[1], l) = LANE(forces[at + 1], l);
        }
        vehicle_power(power_in, power_out, 0, 0, 0);
        const real shown[4] = {x[0], x[1], x[2], power};
        for (int l = 0; l < lanes; l++)
          for (int i = 0; i < 4 && LANE(going, l); i++) motion[(4 * row[l] + i) * nodes + node] = LANE(shown[i], l);
        const real *step_in[5] = {n, x, delayed, outside, &h};
        real *step_out[1] = {next};
        vehicle_step(step_in, step_out, 0, 0, 0);
        for (int i = 0; i < NX; i++) x[i] = choose(going, next[i], x[i]);
      }
      real sum = none; /* 0, or NaN of what is not finite */
      for (int i = 0; i < NX; i++) sum += x[i] - x[i];
      const mask tame = AT_MOST(magnitude(x[0]), bound) & AT_MOST(magnitude(x[2]), bound) & EQUAL(sum, none);
      for (int l = 0; l < lanes; l++)
        if (LANE(going, l) && !LANE(tame, l)) ended[row[l]] = k + 1;
      going &= tame;
    }
    vehicle_power(power_in, power_out, 0, 0, 0);
    const real last[4] = {x[0], x[1], x[2], power};
    for (int l = 0; l < lanes; l++) {
      for (int i = 0; i < 4; i++) motion[(4 * row[l] + i) * nodes + nodes - 1] = LANE(last[i], l);
      for (int i = 0; i < NX; i++) final[row[l] * NX + i] = LANE(x[i], l);
    }
  }
  free(block);
  return 1;
}
