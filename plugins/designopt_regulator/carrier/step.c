/* The closed loops of many vehicles, one row after another.
 *
 * carrier_sample, carrier_step and carrier_power come before this text, generated from
 * designopt_regulator.carrier.step and the equations of motion. NX states, NM numbers of the regulators' memory, NP
 * numbers of a row, ND states that a measurement is made of (speed, yaw rate, course: the first three). Rows do not
 * touch each other: a row has the same bits in any company. */

typedef struct {
  long rows, samples, substeps, step_at, load_at; /* the last two in samples */
  double h, bound;                                /* s; of speed and course, beyond which a row has diverged */
} designopt_plan;

/* Arrays, rows first. In: numbers (NP), start (NX), memory (NM), before and after (2: references of speed and course),
 * load (3: force, moment, command fed forward, from load_at on), delay (in steps), noise (2, samples) of speed and
 * course, which may be null. Out: motion (4, steps + 1) of speed, yaw rate, course and power; commands (4, samples) of
 * speed, speed before clipping, course, course before clipping; final (NX); ended, the sample at whose end the row had
 * diverged, or 0: what comes after it is left as it was. Work: forces (2 (samples + 1)). */
void designopt_carrier(const designopt_plan *plan, const double *numbers, const double *start, const double *memory,
                       const double *before, const double *after, const double *load, const long *delay,
                       const double *noise, double *motion, double *commands, double *final, long *ended,
                       double *forces) {
  const long samples = plan->samples, substeps = plan->substeps, nodes = samples * substeps + 1;
  for (long row = 0; row < plan->rows; row++, numbers += NP, delay++, motion += 4 * nodes, commands += 4 * samples) {
    double x[NX], next[NX], kept[NM], keep[NM], outside[2] = {0.0, 0.0}, power;
    for (int i = 0; i < NX; i++) x[i] = start[row * NX + i];
    for (int i = 0; i < NM; i++) kept[i] = memory[row * NM + i];
    forces[0] = x[3]; /* until the first command has passed the delay, the vehicle has that of trim */
    forces[1] = x[4];
    ended[row] = 0;
    for (long k = 0; k < samples; k++) {
      const int loaded = k >= plan->load_at;
      const double *wanted = (k >= plan->step_at ? after : before) + 2 * row;
      const double reference[3] = {wanted[0], wanted[1], loaded ? load[3 * row + 2] : 0.0};
      double seen[3] = {x[0], x[1], x[2]}, outputs[6];
      if (noise) {
        seen[0] += noise[2 * samples * row + k];
        seen[2] += noise[2 * samples * row + samples + k];
      }
      const double *sample_in[4] = {numbers, kept, seen, reference};
      double *sample_out[2] = {outputs, keep};
      carrier_sample(sample_in, sample_out, 0, 0, 0);
      for (int i = 0; i < NM; i++) kept[i] = keep[i];
      for (int i = 0; i < 4; i++) commands[i * samples + k] = outputs[i];
      forces[2 * k + 2] = outputs[4];
      forces[2 * k + 3] = outputs[5];
      if (loaded) {
        outside[0] = load[3 * row];
        outside[1] = load[3 * row + 1];
      }
      for (long j = 0; j < substeps; j++) {
        const long node = k * substeps + j;
        const double *delayed = forces + (node < *delay ? 0 : 2 * (1 + (node - *delay) / substeps));
        const double *power_in[2] = {numbers, x};
        double *power_out[1] = {&power};
        carrier_power(power_in, power_out, 0, 0, 0);
        motion[node] = x[0];
        motion[nodes + node] = x[1];
        motion[2 * nodes + node] = x[2];
        motion[3 * nodes + node] = power;
        const double *step_in[5] = {numbers, x, delayed, outside, &plan->h};
        double *step_out[1] = {next};
        carrier_step(step_in, step_out, 0, 0, 0);
        for (int i = 0; i < NX; i++) x[i] = next[i];
      }
      double wild = !(fabs(x[0]) <= plan->bound && fabs(x[2]) <= plan->bound);
      for (int i = 0; i < NX; i++) wild += x[i] - x[i]; /* 0, or NaN of what is not finite */
      if (wild != 0.0) {
        ended[row] = k + 1;
        break;
      }
    }
    const double *power_in[2] = {numbers, x};
    double *power_out[1] = {&power};
    carrier_power(power_in, power_out, 0, 0, 0);
    const double last[4] = {x[0], x[1], x[2], power};
    for (int i = 0; i < 4; i++) motion[i * nodes + nodes - 1] = last[i];
    for (int i = 0; i < NX; i++) final[row * NX + i] = x[i];
  }
}
