/* Two masses on a spring with a damper; a force acts on the first. SI units. */
#include <math.h>
#include <string.h>

enum { M1, M2, K, D, STRENGTH, X1, V1, X2, V2, FORCE, A1, A2, STRETCH, COUNT };

static const double START[COUNT] = {2.0, 1.0, 400.0, 1.0, 1e9, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0};

/* Accelerations and stretch from the other variables. */
static void derive(double *v) {
  v[STRETCH] = v[X1] - v[X2];
  double spring = v[K] * v[STRETCH] + v[D] * (v[V1] - v[V2]);
  v[A1] = (v[FORCE] - spring) / v[M1];
  v[A2] = spring / v[M2];
}

static const int STATES[4] = {X1, V1, X2, V2};
static const int RATES[4] = {V1, A1, V2, A2};

/* Runge-Kutta steps of fourth order, none longer than 1 ms. */
static void advance(double *v, double duration) {
  static const double NODE[4] = {0.0, 0.5, 0.5, 1.0}, WEIGHT[4] = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6};
  int steps = (int)ceil(duration / 1e-3 - 1e-9);
  double h = duration / (steps > 0 ? steps : 1);
  for (int s = 0; s < steps; s++) {
    double x[4], rate[4] = {0}, sum[4] = {0};
    for (int i = 0; i < 4; i++) x[i] = v[STATES[i]];
    for (int stage = 0; stage < 4; stage++) {
      for (int i = 0; i < 4; i++) v[STATES[i]] = x[i] + NODE[stage] * h * rate[i];
      derive(v);
      for (int i = 0; i < 4; i++) rate[i] = v[RATES[i]];
      for (int i = 0; i < 4; i++) sum[i] += WEIGHT[stage] * rate[i];
    }
    for (int i = 0; i < 4; i++) v[STATES[i]] = x[i] + h * sum[i];
  }
  derive(v);
}
