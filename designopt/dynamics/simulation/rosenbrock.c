/* Adaptive Rosenbrock integration of a system whose functions CasADi generated into the text before this one.

   The method comes as data (see tableau.py, which also states its equations). The text before defines the sizes NX
   (states), NY (outputs), NG (guards), NC (constants of a run), NS (unknowns of a residual form, 0 for an explicit one),
   casadi_int and the functions

       system_constants(u, p, q) -> c         what depends on the constants of a run alone
       system_f(x, c, t) -> xdot
       system_fj(x, c, t) -> xdot, J = df/dx dense by columns, df/dt
       system_output(x, c, t) -> y            when NY > 0
       system_guard(x, c, t) -> g             when NG > 0

   With NW > 0 signals, cubics between knots, c has their NW values and NW rates at t behind the NC constants; df/dt is
   then the derivative with these rates.

   With NS > 0 the rates xdot = f(x, s, t) hold unknowns s that make 0 = R(x, s, t) = M(x, t) s + b(x, t):

       system_linear(x, c, t) -> M, b         M with a sparsity; its lower triangle alone with SYMMETRIC (definite)
       system_f(x, c, t, s) -> xdot
       system_fj(x, c, t, s) -> R_x, R_t, f_x, f_s, f_t, each with the sparsity that system_fj_sparsity_out tells
       system_output(x, c, t, s) -> y         when NY > 0; UNKNOWNS_IN_OUTPUT: it depends on s

   M is factored with numbers; J = f_x - f_s M^-1 R_x and df/dt = f_t - f_s M^-1 R_t.

   Nothing here is static or global: any number of threads may integrate at once. */

#ifdef LARGE
#pragma GCC optimize("O2") /* the text before is too large for it (see compile.py), these loops gain by it */
#endif

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum { DONE = 0, GUARD = 1, STEP_LIMIT = 2, STEP_TOO_SMALL = 3, NONFINITE = 4, NO_MEMORY = 5 };

typedef struct {
    casadi_int stages, order;
    double gamma;
    const double *alpha, *gamma_sum, *a, *c, *m, *e, *d2, *d3;
    const casadi_int *new_f;
} method_t;

/* A signal: knots (pieces + 1) and coefficients (pieces, 4) of powers 3 to 0 of the time since the knot before. */
typedef struct {
    const double *knots, *coefficients;
    casadi_int pieces;
} signal_t;

typedef struct {
    const double *x0, *u, *p, *q, *times, *rtol, *atol;
    casadi_int n_times, max_steps;
    double first_step; /* <= 0: chosen here */
    double fixed_step; /* > 0: steps of this length without error control */
    const signal_t *signals;
} problem_t;

typedef struct {
    double *t, *x, *y; /* n_times + 1 rows */
    casadi_int rows, steps, rejected, evaluations, guard;
    double last_step;
    double *transition; /* dx/dx0 at the end, by columns; NULL: not wanted */
} result_t;

typedef int (*model_f)(const casadi_real **, casadi_real **, casadi_int *, casadi_real *, int);

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline)) /* sizes become constants */
#else
#define INLINE static inline
#endif

/* Work space of the generated functions. Their first arguments and results are set for each call. */
typedef struct {
    const casadi_real **arg;
    casadi_real **res;
    casadi_int *iw;
    casadi_real *w;
    double *constants;
#if NW > 0
    const signal_t *signals;
    casadi_int *piece; /* of each signal, that of the time looked at last */
    double at;         /* that time */
#endif
#if NS > 0
    double *M, *s, *dR; /* factors of M by columns, the unknowns, (R_x, R_t) by columns */
    double *part[5];    /* nonzeros of the results of system_fj */
    int *pivot;
#endif
} space_t;

#if NW > 0
/* Values and rates of all signals at t, behind the constants. Beyond its ends a signal goes on as its last cubic. */
static void follow(space_t *s, double t) {
    double *values = s->constants + NC, *rates = values + NW;
    for (int i = 0; i < NW; i++) {
        const signal_t *w = s->signals + i;
        casadi_int k = s->piece[i];
        while (k > 0 && t < w->knots[k]) k--;
        while (k < w->pieces - 1 && t >= w->knots[k + 1]) k++;
        s->piece[i] = k;
        const double *c = w->coefficients + 4 * k, d = t - w->knots[k];
        values[i] = ((c[0] * d + c[1]) * d + c[2]) * d + c[3];
        rates[i] = (3.0 * c[0] * d + 2.0 * c[1]) * d + c[2];
    }
    s->at = t;
}
#endif

static void call(model_f f, space_t *s, const double *x, double t, double *r0, double *r1, double *r2) {
#if NW > 0
    if (t != s->at) follow(s, t);
#endif
    s->arg[0] = x;
    s->arg[1] = s->constants;
    s->arg[2] = &t;
#if NS > 0
    s->arg[3] = s->s;
#endif
    s->res[0] = r0;
    s->res[1] = r1;
    s->res[2] = r2;
    f(s->arg, s->res, s->iw, s->w, 0);
}

static int all_finite(const double *v, int n) {
    double sum = 0.0; /* stays 0 exactly as long as every entry is finite */
    for (int i = 0; i < n; i++) sum += v[i] * 0.0;
    return sum == 0.0;
}

/* Index of the first guard that is not positive (NaN counts), or -1. */
static int broken_guard(space_t *s, const double *x, double t) {
#if NG > 0
    double g[NG];
    call(system_guard, s, x, t, g, NULL, NULL);
    for (int i = 0; i < NG; i++)
        if (!(g[i] > 0.0)) return i;
#else
    (void)s, (void)x, (void)t;
#endif
    return -1;
}

/* LU factors of E (n x n by columns) with partial pivoting; 0 when E is singular or not finite. */
INLINE int factor(const int n, double *E, int *pivot) {
    for (int k = 0; k < n; k++) {
        double *column = E + k * n;
        int best = k;
        for (int i = k + 1; i < n; i++)
            if (fabs(column[i]) > fabs(column[best])) best = i;
        pivot[k] = best;
        double d = column[best];
        if (d == 0.0 || !isfinite(d)) return 0;
        column[best] = column[k];
        column[k] = 1.0 / d;
        for (int i = k + 1; i < n; i++) column[i] *= column[k];
        for (int j = k + 1; j < n; j++) {
            double *other = E + j * n;
            double f = other[best];
            other[best] = other[k];
            other[k] = f;
            if (f != 0.0)
                for (int i = k + 1; i < n; i++) other[i] -= column[i] * f;
        }
    }
    return 1;
}

INLINE void solve(const int n, const double *E, const int *pivot, double *b) {
    for (int k = 0; k < n; k++) {
        double f = b[pivot[k]];
        b[pivot[k]] = b[k];
        b[k] = f;
        for (int i = k + 1; i < n; i++) b[i] -= E[k * n + i] * f;
    }
    for (int k = n - 1; k >= 0; k--) {
        b[k] *= E[k * n + k];
        for (int i = 0; i < k; i++) b[i] -= E[k * n + i] * b[k];
    }
}

#if NS > 0
/* A dense matrix by columns from its nonzeros, as a sparsity of CasADi says: rows, columns, where each column begins,
   rows of the nonzeros; or rows, columns, 1 for a dense one. */
static void spread(const casadi_int *sparsity, const double *nonzeros, double *dense) {
    const casadi_int rows = sparsity[0], columns = sparsity[1], *begin = sparsity + 2, *row = begin + columns + 1;
    if (begin[0] == 1) {
        memcpy(dense, nonzeros, (size_t)(rows * columns) * sizeof(double));
        return;
    }
    memset(dense, 0, (size_t)(rows * columns) * sizeof(double));
    for (casadi_int j = 0; j < columns; j++)
        for (casadi_int e = begin[j]; e < begin[j + 1]; e++) dense[j * rows + row[e]] = nonzeros[e];
}

/* Factors of M; a symmetric definite one has its lower triangle alone and becomes L D L'. 0 when it is singular. */
INLINE int factor_mass(double *M, int *pivot) {
#if SYMMETRIC
    (void)pivot;
    for (int k = 0; k < NS; k++) {
        double *column = M + k * NS, d = column[k];
        if (d == 0.0 || !isfinite(d)) return 0;
        d = 1.0 / d;
        for (int j = k + 1; j < NS; j++) {
            double *other = M + j * NS, f = column[j] * d;
            for (int i = j; i < NS; i++) other[i] -= f * column[i];
        }
        for (int i = k + 1; i < NS; i++) column[i] *= d;
        column[k] = d;
    }
    return 1;
#else
    return factor(NS, M, pivot);
#endif
}

INLINE void solve_mass(const double *M, const int *pivot, double *b) {
#if SYMMETRIC
    (void)pivot;
    for (int k = 0; k < NS; k++)
        for (int i = k + 1; i < NS; i++) b[i] -= M[k * NS + i] * b[k];
    for (int k = NS - 1; k >= 0; k--) {
        double sum = b[k] * M[k * NS + k];
        for (int i = k + 1; i < NS; i++) sum -= M[k * NS + i] * b[i];
        b[k] = sum;
    }
#else
    solve(NS, M, pivot, b);
#endif
}

/* The unknowns at (x, t), and M factored; 0 when M is singular or not finite. */
static int find_unknowns(space_t *s, const double *x, double t) {
    call(system_linear, s, x, t, s->part[0], s->s, NULL);
    spread(system_linear_sparsity_out(0), s->part[0], s->M);
    if (!factor_mass(s->M, s->pivot)) return 0;
    for (int i = 0; i < NS; i++) s->s[i] = -s->s[i];
    solve_mass(s->M, s->pivot, s->s);
    return 1;
}
#endif

/* f = xdot; not finite where there is none. */
static void rates(space_t *s, const double *x, double t, double *f) {
#if NS > 0
    if (!find_unknowns(s, x, t)) {
        for (int i = 0; i < NX; i++) f[i] = NAN;
        return;
    }
#endif
    call(system_f, s, x, t, f, NULL, NULL);
}

static double clip(double value, double low, double high) { return value < low ? low : value > high ? high : value; }

/* y(theta) between the ends of a step: see tableau.py. */
static void between(double theta, const double *y0, const double *y1, const double *k2, const double *k3, double *y) {
    for (int i = 0; i < NX; i++)
        y[i] = (1.0 - theta) * y0[i] + theta * (y1[i] + (1.0 - theta) * (k2[i] + theta * k3[i]));
}

static void put(result_t *r, space_t *s, double t, const double *x) {
    r->t[r->rows] = t;
    memcpy(r->x + r->rows * NX, x, NX * sizeof(double));
#if NY > 0
#if UNKNOWNS_IN_OUTPUT
    if (!find_unknowns(s, x, t))
        for (int i = 0; i < NS; i++) s->s[i] = NAN;
#endif
    call(system_output, s, x, t, r->y + r->rows * NY, NULL, NULL);
#else
    (void)s;
#endif
    r->rows++;
}

/* Steps below that are noise of the time. */
static double shortest(double t, double span) { return fmax(16.0 * DBL_EPSILON * fabs(t), 1e-30 * span); }

/* The length of a first step: one hundredth of the time in which the state would change by its own size. */
static double initial_step(const problem_t *pb, const double *x, const double *f, double span) {
    double size = 0.0, speed = 0.0;
    for (int i = 0; i < NX; i++) {
        double scale = pb->atol[i] + pb->rtol[i] * fabs(x[i]);
        size += (x[i] / scale) * (x[i] / scale);
        speed += (f[i] / scale) * (f[i] / scale);
    }
    double h = size > 1e-10 && speed > 1e-10 ? 0.01 * sqrt(size / speed) : 1e-6 * span;
    return clip(h, 1e-20 * span, 0.1 * span);
}

/* Everything that changes in a run, in one allocation. */
typedef struct {
    double *y, *y_new, *stage, *fs, *f, *f_new, *ft, *ft_new, *J, *J_new, *E, *U, *k2, *k3, *constants;
    double *J_middle, *stages_matrix; /* of the variational equation; the matrix of its stages, then a right-hand side */
    int *stages_pivot;
} run_t;

static void exchange(double **a, double **b) {
    double *keep = *a;
    *a = *b;
    *b = keep;
}

enum { OK, BROKEN, OUTSIDE }; /* a step: computed, not finite, a stage behind a guard */

/* One step of length h from (t, y) with f, J and ft known there: y_new, the stages U and the error norm. */
static int step(const problem_t *pb, const method_t *me, run_t *r, space_t *s, double t, double h, int fixed, double *error,
                casadi_int *evaluations, int *guard) {
    int pivot[NX];
    const double per_h = 1.0 / h, diagonal = per_h / me->gamma;
    for (int i = 0; i < NX * NX; i++) r->E[i] = -r->J[i];
    for (int i = 0; i < NX; i++) r->E[i * NX + i] += diagonal;
    if (!factor(NX, r->E, pivot)) return BROKEN;
    const double *f = r->f;
    for (casadi_int k = 0; k < me->stages; k++) {
        const double *a = me->a + k * me->stages, *c = me->c + k * me->stages;
        double *U = r->U + k * NX;
        if (k > 0 && me->new_f[k]) {
            memcpy(r->stage, r->y, NX * sizeof(double));
            for (casadi_int j = 0; j < k; j++)
                if (a[j] != 0.0)
                    for (int i = 0; i < NX; i++) r->stage[i] += a[j] * r->U[j * NX + i];
            double ts = t + me->alpha[k] * h;
            if ((*guard = broken_guard(s, r->stage, ts)) >= 0) return OUTSIDE;
            rates(s, r->stage, ts, r->fs);
            ++*evaluations;
            f = r->fs;
        }
        double weight = h * me->gamma_sum[k];
        for (int i = 0; i < NX; i++) U[i] = f[i] + weight * r->ft[i];
        for (casadi_int j = 0; j < k; j++) {
            double q = c[j] * per_h;
            if (q != 0.0)
                for (int i = 0; i < NX; i++) U[i] += q * r->U[j * NX + i];
        }
        solve(NX, r->E, pivot, U);
        if (!all_finite(U, NX)) return BROKEN;
    }
    double sum = 0.0;
    for (int i = 0; i < NX; i++) {
        double y = r->y[i], e = 0.0;
        for (casadi_int k = 0; k < me->stages; k++) {
            y += me->m[k] * r->U[k * NX + i];
            e += me->e[k] * r->U[k * NX + i];
        }
        r->y_new[i] = y;
        double scale = pb->atol[i] + pb->rtol[i] * fmax(fabs(r->y[i]), fabs(y));
        sum += (e / scale) * (e / scale);
    }
    *error = fixed ? 0.0 : sqrt(sum / NX);
    return all_finite(r->y_new, NX) && isfinite(*error) ? OK : BROKEN;
}

static void dense(const method_t *me, run_t *r) {
    for (int i = 0; i < NX; i++) {
        r->k2[i] = r->k3[i] = 0.0;
        for (casadi_int k = 0; k < me->stages; k++) {
            r->k2[i] += me->d2[k] * r->U[k * NX + i];
            r->k3[i] += me->d3[k] * r->U[k * NX + i];
        }
    }
}

/* f, J = df/dx and df/dt; 0 where they are not finite. */
static int derivatives(space_t *s, const double *x, double t, double *f, double *J, double *ft) {
#if NS > 0
    const casadi_int *f_s = system_fj_sparsity_out(3), *begin = f_s + 2, *row = begin + NS + 1;
    const int is_dense = begin[0] == 1;
    if (!find_unknowns(s, x, t)) return 0;
    call(system_f, s, x, t, f, NULL, NULL);
    s->res[3] = s->part[3];
    s->res[4] = s->part[4];
    call(system_fj, s, x, t, s->part[0], s->part[1], s->part[2]);
    spread(system_fj_sparsity_out(0), s->part[0], s->dR);
    spread(system_fj_sparsity_out(1), s->part[1], s->dR + NX * NS);
    spread(system_fj_sparsity_out(2), s->part[2], J);
    spread(system_fj_sparsity_out(4), s->part[4], ft);
    for (int j = 0; j <= NX; j++) {
        double *ds = s->dR + j * NS, *column = j < NX ? J + j * NX : ft;
        solve_mass(s->M, s->pivot, ds);
        for (casadi_int k = 0, e = 0; k < NS; k++)
            for (casadi_int end = is_dense ? e + NX : begin[k + 1]; e < end; e++)
                column[is_dense ? e - k * NX : row[e]] -= s->part[3][e] * ds[k];
    }
#else
    call(system_fj, s, x, t, f, J, ft);
#endif
    return all_finite(f, NX) && all_finite(J, NX * NX) && all_finite(ft, NX);
}

/* The variational equation d(Phi)/dt = J(t) Phi over an accepted step: Lobatto IIIC with three stages (order 4, L-stable;
   Hairer & Wanner 1996, table IV.5.8), J at both ends as known and in the middle on the solution in between. Phi is by
   columns. 0: not finite. */
static int advance_transition(const method_t *me, run_t *r, space_t *s, double t, double h, double *Phi) {
    enum { N = 3 * NX };
    static const double A[3][3] = {{1.0 / 6, -1.0 / 3, 1.0 / 6}, {1.0 / 6, 5.0 / 12, -1.0 / 12}, {1.0 / 6, 2.0 / 3, 1.0 / 6}};
    const double *J[3] = {r->J, r->J_middle, r->J_new};
    double *E = r->stages_matrix, *column = E + N * N;
    dense(me, r);
    between(0.5, r->y, r->y_new, r->k2, r->k3, r->stage);
    if (!derivatives(s, r->stage, t + 0.5 * h, r->fs, r->J_middle, column)) return 0;
    for (int l = 0; l < 3; l++)
        for (int j = 0; j < NX; j++)
            for (int k = 0; k < 3; k++)
                for (int i = 0; i < NX; i++)
                    E[(l * NX + j) * N + k * NX + i] = (k == l && i == j) - h * A[k][l] * J[l][j * NX + i];
    if (!factor(N, E, r->stages_pivot)) return 0;
    for (int j = 0; j < NX; j++) {
        for (int k = 0; k < 3; k++) memcpy(column + k * NX, Phi + j * NX, NX * sizeof(double));
        solve(N, E, r->stages_pivot, column);
        memcpy(Phi + j * NX, column + 2 * NX, NX * sizeof(double));
    }
    return all_finite(Phi, NX * NX);
}

static int integrate(const problem_t *pb, const method_t *me, result_t *out, run_t *r, space_t *s) {
    const double start = pb->times[0], end = pb->times[pb->n_times - 1], span = end - start;
    /* A guard that only stages meet is located to `resolution`, one between two steps much finer. */
    const double resolution = 1e-12 * span;
    const int fixed = pb->fixed_step > 0.0;
    double t = start, h, last_h = 0.0, last_error = 0.0;
    int rejected = 0, guard;
    casadi_int next = 1;

    if (out->transition)
        for (int i = 0; i < NX * NX; i++) out->transition[i] = i % (NX + 1) == 0;
    memcpy(r->y, pb->x0, NX * sizeof(double));
    put(out, s, t, r->y);
    if ((guard = broken_guard(s, r->y, t)) >= 0) {
        out->guard = guard;
        return GUARD;
    }
    out->evaluations++;
    if (!derivatives(s, r->y, t, r->f, r->J, r->ft)) return NONFINITE;
    h = fixed ? pb->fixed_step : pb->first_step > 0.0 ? pb->first_step : initial_step(pb, r->y, r->f, span);
    out->last_step = h;

    int status = DONE;
    while (next < pb->n_times) {
        if (out->steps + out->rejected >= pb->max_steps) {
            status = STEP_LIMIT;
            break;
        }
        if (!fixed) h = fmax(h, shortest(t, span));
        double wanted = h, t_new = t + h, error = 0.0;
        int last = 0;
        if (fixed) t_new = start + (double)(out->steps + 1) * pb->fixed_step;
        if (t_new >= end - (fixed ? 1e-9 * pb->fixed_step : 0.01 * h)) {
            t_new = end;
            last = 1;
        } else if (!fixed && t + 2.0 * h > end) {
            t_new = t + 0.5 * (end - t); /* two equal steps rather than a short last one */
        }
        h = t_new - t;
        if (!(h > 0.0)) { /* a fixed step that the numbers for time cannot resolve */
            status = STEP_TOO_SMALL;
            break;
        }

        int state = step(pb, me, r, s, t, h, fixed, &error, &out->evaluations, &guard);
        double shrink = 0.0; /* > 0: the step is not accepted */
        if (state == OUTSIDE) {
            if (h <= fmax(resolution, 64.0 * DBL_EPSILON * fabs(t))) {
                out->guard = guard;
                status = GUARD;
                break;
            }
            shrink = 0.5;
        } else if (state == BROKEN) {
            shrink = 0.25;
        } else if (error > 1.0) {
            shrink = clip(0.9 * pow(error, -1.0 / (double)me->order), 0.2, 0.9);
        } else {
            if ((guard = broken_guard(s, r->y_new, t_new)) >= 0) {
                /* The step ends behind a guard: bisection on the solution in between. */
                double low = 0.0, high = 1.0;
                dense(me, r);
                while ((high - low) * h > 1e-3 * resolution && high - low > DBL_EPSILON) {
                    double middle = 0.5 * (low + high);
                    between(middle, r->y, r->y_new, r->k2, r->k3, r->stage);
                    int there = broken_guard(s, r->stage, t + middle * h);
                    if (there >= 0) {
                        high = middle;
                        guard = there;
                    } else {
                        low = middle;
                    }
                }
                double found = t + low * h;
                for (; next < pb->n_times && pb->times[next] <= found; next++) {
                    between((pb->times[next] - t) / h, r->y, r->y_new, r->k2, r->k3, r->stage);
                    put(out, s, pb->times[next], r->stage);
                }
                between(low, r->y, r->y_new, r->k2, r->k3, r->stage);
                memcpy(r->y, r->stage, NX * sizeof(double));
                t = found;
                out->steps++;
                out->guard = guard;
                status = GUARD;
                break;
            }
            out->evaluations++;
            if (!derivatives(s, r->y_new, t_new, r->f_new, r->J_new, r->ft_new)) {
                state = BROKEN;
                shrink = 0.25;
            }
        }
        if (shrink > 0.0) {
            out->rejected++;
            h *= shrink;
            rejected = 1;
            if (fixed || h < shortest(t, span)) {
                status = state == BROKEN ? NONFINITE : state == OUTSIDE ? GUARD : STEP_TOO_SMALL;
                if (status == GUARD) out->guard = guard;
                break;
            }
            continue;
        }

        out->steps++;
        if (next < pb->n_times && pb->times[next] <= t_new) {
            dense(me, r);
            for (; next < pb->n_times && pb->times[next] < t_new; next++) {
                between((pb->times[next] - t) / h, r->y, r->y_new, r->k2, r->k3, r->stage);
                put(out, s, pb->times[next], r->stage);
            }
            if (next < pb->n_times && pb->times[next] == t_new) {
                put(out, s, t_new, r->y_new);
                next++;
            }
        }
        if (out->transition && !advance_transition(me, r, s, t, h, out->transition)) {
            status = NONFINITE;
            break;
        }
        exchange(&r->y, &r->y_new);
        exchange(&r->f, &r->f_new);
        exchange(&r->J, &r->J_new);
        exchange(&r->ft, &r->ft_new);
        t = t_new;
        if (fixed) {
            h = pb->fixed_step;
        } else {
            /* Predictive control of Gustafsson (1994), as Hairer & Wanner (1996), section IV.8, equation 8.25. */
            double power = 1.0 / (double)me->order, floor = fmax(error, 1e-10);
            double factor = 0.9 * pow(floor, -power);
            if (last_h > 0.0)
                factor = fmin(factor, 0.9 * (h / last_h) * pow(last_error / (floor * floor), power));
            last_h = h;
            last_error = fmax(error, 1e-2);
            double proposed = h * clip(factor, 0.2, 6.0);
            if (rejected) proposed = fmin(proposed, h);
            /* A step shortened to end in time says nothing against the length wanted. */
            h = h < wanted ? fmax(proposed, wanted) : proposed;
            rejected = 0;
        }
        out->last_step = h;
        if (last) break;
    }
    if (status != DONE && t > out->t[out->rows - 1]) put(out, s, t, r->y);
    return status;
}

/* Integrate over problem->times; returns how it ended. */
EXPORT int designopt_simulate(const problem_t *pb, const method_t *me, result_t *out) {
    casadi_int n_arg = 4, n_res = 5, n_iw = 0, n_w = 0, a, b, c, d;
    int (*const works[])(casadi_int *, casadi_int *, casadi_int *, casadi_int *) = {
        system_constants_work, system_f_work, system_fj_work,
#if NS > 0
        system_linear_work,
#endif
#if NY > 0
        system_output_work,
#endif
#if NG > 0
        system_guard_work,
#endif
    };
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) {
        works[i](&a, &b, &c, &d);
        if (a > n_arg) n_arg = a;
        if (b > n_res) n_res = b;
        if (c > n_iw) n_iw = c;
        if (d > n_w) n_w = d;
    }
    const size_t vectors = 10 + (size_t)me->stages, matrices = 3;
    const size_t variational = out->transition ? 10 * NX * NX + 3 * NX : 0;
    const size_t partial[] = {(size_t)NS * (NX > NS ? NX : NS), NS, NX * NX, NX * NS, NX}; /* results of system_fj */
    const size_t residual = NS > 0 ? NS * NS + NS + NS * (NX + 1) + partial[0] + NS + NX * NX + NX * NS + NX : 0;
    const size_t reals = vectors * NX + matrices * NX * NX + NC + 2 * NW + residual + variational + (size_t)n_w + 1;
    double *memory = malloc(reals * sizeof(double));
    const casadi_real **arg = malloc((size_t)n_arg * sizeof *arg);
    casadi_real **res = malloc((size_t)n_res * sizeof *res);
    casadi_int *iw = malloc((size_t)(n_iw + 1) * sizeof *iw);
    casadi_int *piece = calloc(NW + 1, sizeof *piece);
    int *pivot = malloc((NS + 3 * NX + 1) * sizeof *pivot);
    int status = NO_MEMORY;
    out->rows = out->steps = out->rejected = out->evaluations = 0;
    out->guard = -1;
    if (memory && arg && res && iw && piece && pivot) {
        run_t r;
        double *free_part = memory;
        double **const parts[] = {&r.y, &r.y_new, &r.stage, &r.fs, &r.f, &r.f_new, &r.ft, &r.ft_new, &r.k2, &r.k3};
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++, free_part += NX) *parts[i] = free_part;
        r.U = free_part, free_part += (size_t)me->stages * NX;
        r.J = free_part, free_part += NX * NX;
        r.J_new = free_part, free_part += NX * NX;
        r.E = free_part, free_part += NX * NX;
        r.constants = free_part, free_part += NC + 2 * NW;
        space_t s = {.arg = arg, .res = res, .iw = iw, .constants = r.constants};
#if NS > 0
        s.M = free_part, free_part += NS * NS;
        s.s = free_part, free_part += NS;
        s.dR = free_part, free_part += NS * (NX + 1);
        for (int i = 0; i < 5; i++) s.part[i] = free_part, free_part += partial[i];
        s.pivot = pivot;
#endif
#if NW > 0
        s.signals = pb->signals;
        s.piece = piece;
        s.at = NAN;
#endif
        r.stages_pivot = pivot + NS;
        r.J_middle = free_part, r.stages_matrix = free_part + NX * NX, free_part += variational;
        s.w = free_part;
        arg[0] = pb->u, arg[1] = pb->p, arg[2] = pb->q;
        res[0] = r.constants;
        system_constants(arg, res, iw, s.w, 0);
        status = integrate(pb, me, out, &r, &s);
    }
    free(memory);
    free(arg);
    free(res);
    free(iw);
    free(piece);
    free(pivot);
    return status;
}
