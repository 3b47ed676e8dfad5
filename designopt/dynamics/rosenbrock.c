/* Adaptive Rosenbrock integration of one system with sampling and guards.
 *
 * Compiled behind the generated C of the system, which provides designopt_derivatives, designopt_rhs and, where the
 * system has them, designopt_output and designopt_guard (HAS_OUTPUT, HAS_GUARD). Coefficients come from methods.py.
 * No static state: any number of threads may run at once. Matrices from generated code are column-major.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

typedef int (*generated)(const double **, double **, casadi_int *, double *, int);
typedef int (*generated_work)(casadi_int *, casadi_int *, casadi_int *, casadi_int *);

enum { DONE, GUARD, STEP_LIMIT, STEP_UNDERFLOW, NONFINITE, NO_MEMORY };

/* A generated function with its scratch memory. */
typedef struct {
    generated call;
    const double **arg;
    double **res;
    casadi_int *iw;
    double *w;
} function;

static int open_function(function *f, generated call, generated_work sizes)
{
    casadi_int n_arg = 0, n_res = 0, n_iw = 0, n_w = 0;
    f->call = call;
    if (sizes(&n_arg, &n_res, &n_iw, &n_w)) return 0;
    f->arg = calloc((size_t)n_arg + 1, sizeof *f->arg);
    f->res = calloc((size_t)n_res + 1, sizeof *f->res);
    f->iw = calloc((size_t)n_iw + 1, sizeof *f->iw);
    f->w = calloc((size_t)n_w + 1, sizeof *f->w);
    return f->arg && f->res && f->iw && f->w;
}

static void close_function(function *f)
{
    free((void *)f->arg);
    free((void *)f->res);
    free(f->iw);
    free(f->w);
}

/* What does not change during a run: constant arguments and the method. */
typedef struct {
    const double *u, *p, *q;
} constants;

static void evaluate(function *f, const constants *k, const double *x, double t, double *r0, double *r1, double *r2)
{
    f->arg[0] = x;
    f->arg[1] = k->u;
    f->arg[2] = 0;
    f->arg[3] = k->p;
    f->arg[4] = k->q;
    f->arg[5] = &t;
    f->res[0] = r0;
    if (r1) {
        f->res[1] = r1;
        f->res[2] = r2;
    }
    f->call(f->arg, f->res, f->iw, f->w, 0);
}

static int all_finite(const double *v, int n)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(v[i])) return 0;
    return 1;
}

/* LU factors of the row-major matrix a (n, n) in place, partial pivoting; 0 when singular. */
static int factor(double *a, int *pivot, int n)
{
    for (int k = 0; k < n; k++) {
        int best = k;
        for (int i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
        pivot[k] = best;
        if (a[best * n + k] == 0.0 || !isfinite(a[best * n + k])) return 0;
        if (best != k)
            for (int j = 0; j < n; j++) {
                double swap = a[k * n + j];
                a[k * n + j] = a[best * n + j];
                a[best * n + j] = swap;
            }
        for (int i = k + 1; i < n; i++) {
            double ratio = a[i * n + k] /= a[k * n + k];
            for (int j = k + 1; j < n; j++) a[i * n + j] -= ratio * a[k * n + j];
        }
    }
    return 1;
}

static void solve(const double *a, const int *pivot, int n, double *b)
{
    for (int k = 0; k < n; k++) {
        double swap = b[k];
        b[k] = b[pivot[k]];
        b[pivot[k]] = swap;
    }
    for (int i = 1; i < n; i++)
        for (int j = 0; j < i; j++) b[i] -= a[i * n + j] * b[j];
    for (int i = n - 1; i >= 0; i--) {
        for (int j = i + 1; j < n; j++) b[i] -= a[i * n + j] * b[j];
        b[i] /= a[i * n + i];
    }
}

/* The interpolant of a step at the share s of it: (1-s) x0 + s (x1 + (1-s) (d2 + s d3)). */
static void interpolate(int n, double s, const double *x0, const double *x1, const double *d2, const double *d3,
                        double *x)
{
    for (int i = 0; i < n; i++) x[i] = (1.0 - s) * x0[i] + s * (x1[i] + (1.0 - s) * (d2[i] + s * d3[i]));
}

/* Index of the smallest guard when it is not positive (or not a number), else -1. */
static int closed_guard(const double *g, int n)
{
    int worst = -1;
    double least = 0.0;
    for (int i = 0; i < n; i++) {
        if (isnan(g[i])) return i;
        if (g[i] <= 0.0 && (worst < 0 || g[i] < least)) {
            worst = i;
            least = g[i];
        }
    }
    return worst;
}

static double error_norm(int n, const double *e, const double *x0, const double *x1, double rtol, const double *atol)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        double scale = atol[i] + rtol * fmax(fabs(x0[i]), fabs(x1[i]));
        sum += (e[i] / scale) * (e[i] / scale);
    }
    return sqrt(sum / n);
}

/* Integrate from times[0] to times[nt-1]; samples at all of times. x (n) is the start and becomes the end.
 *
 * method: gamma, then a (s*s), c (s*s), m, e, alpha, gammas (s each), then, if `dense`, the interpolant's (2*s).
 * fixed > 0: steps of that size without error control. info: t, next step, and counts: status, steps, rejected,
 * evaluations, samples written, guard.
 */
EXPORT int designopt_integrate(int n, int ny, int ng, int nt, const double *times, double *x, const double *u,
                               const double *p, const double *q, int stages, int order, int dense,
                               const double *method, double rtol, const double *atol, double first, double largest,
                               double fixed, long long max_steps, double *xs, double *ys, double *info,
                               long long *counts)
{
    const double gamma = method[0], *a = method + 1, *c = a + stages * stages, *m = c + stages * stages;
    const double *e = m + stages, *alpha = e + stages, *gammas = alpha + stages, *d = gammas + stages;
    constants k = {u, p, q};
    function derivatives = {0}, rhs = {0}, output = {0}, guard = {0};
    int status = DONE, written = 0, closed = -1, after_rejection = 0;
    long long steps = 0, rejected = 0, evaluations = 0;
    double t = times[0], end = times[nt - 1], previous_error = 0.01, previous_step = 0.0, h = 0.0, proposed = 0.0;
    size_t size = (size_t)n;
    double *memory = calloc(size * (2 * size + (size_t)stages + 11) + (size_t)ng + 1, sizeof(double));
    int *pivot = calloc(size, sizeof(int));
    int ready = memory && pivot && open_function(&derivatives, designopt_derivatives, designopt_derivatives_work) &&
                open_function(&rhs, designopt_rhs, designopt_rhs_work);
#ifdef HAS_OUTPUT
    ready = ready && open_function(&output, designopt_output, designopt_output_work);
#endif
#ifdef HAS_GUARD
    ready = ready && open_function(&guard, designopt_guard, designopt_guard_work);
#endif
    if (!ready) {
        status = NO_MEMORY;
        goto finish;
    }
    double *J = memory, *E = J + n * n, *U = E + n * n, *f = U + stages * n, *ft = f + n, *stage = ft + n;
    double *fs = stage + n, *x1 = fs + n, *err = x1 + n, *d2 = err + n, *d3 = d2 + n, *point = d3 + n;
    double *f_old = point + n, *g = f_old + n;

#define SAMPLE(state, time)                                                                                           \
    do {                                                                                                              \
        memcpy(xs + (size_t)written * size, state, size * sizeof(double));                                            \
        if (ny) evaluate(&output, &k, state, time, ys + (size_t)written * (size_t)ny, 0, 0);                           \
        written++;                                                                                                    \
    } while (0)

    evaluate(&derivatives, &k, x, t, f, J, ft);
    evaluations++;
    if (ng) {
        evaluate(&guard, &k, x, t, g, 0, 0);
        closed = closed_guard(g, ng);
    }
    SAMPLE(x, t);
    if (closed >= 0) {
        status = GUARD;
        goto finish;
    }
    if (!all_finite(f, n) || !all_finite(J, n * n) || !all_finite(ft, n)) {
        status = NONFINITE;
        goto finish;
    }
    if (fixed > 0.0) {
        h = fixed;
    } else if (first > 0.0) {
        h = first;
    } else { /* Hairer, Norsett & Wanner (1993), section II.4, first guess */
        double size_x = error_norm(n, x, x, x, rtol, atol), size_f = error_norm(n, f, x, x, rtol, atol);
        h = size_x < 1e-5 || size_f < 1e-5 ? 1e-6 : 0.01 * size_x / size_f;
    }

    while (t < end) {
        if (steps + rejected >= max_steps) {
            status = STEP_LIMIT;
            break;
        }
        h = fmin(h, largest);
        proposed = h;
        int last = t + 1.0000001 * h >= end;
        if (last) h = end - t;
        if (h <= 16.0 * DBL_EPSILON * fabs(t) || h <= DBL_MIN) {
            status = all_finite(x1, n) ? STEP_UNDERFLOW : NONFINITE;
            break;
        }
        int good = 1;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) E[i * n + j] = (i == j ? 1.0 / (h * gamma) : 0.0) - J[i + n * j];
        good = factor(E, pivot, n);
        for (int s = 0; s < stages && good; s++) {
            double *Us = U + s * n;
            const double *as = a + s * stages, *cs = c + s * stages;
            if (s > 0) {
                int moved = 0; /* a stage at the point of the one before reuses its right-hand side */
                for (int j = 0; j < s; j++) moved |= as[j] != a[(s - 1) * stages + j];
                if (moved || alpha[s] != alpha[s - 1]) {
                    memcpy(stage, x, size * sizeof(double));
                    for (int j = 0; j < s; j++)
                        if (as[j] != 0.0)
                            for (int i = 0; i < n; i++) stage[i] += as[j] * U[j * n + i];
                    evaluate(&rhs, &k, stage, t + alpha[s] * h, fs, 0, 0);
                    evaluations++;
                    good = all_finite(fs, n);
                }
            } else {
                memcpy(fs, f, size * sizeof(double));
            }
            for (int i = 0; i < n; i++) {
                double sum = fs[i] + gammas[s] * h * ft[i];
                for (int j = 0; j < s; j++) sum += cs[j] / h * U[j * n + i];
                Us[i] = sum;
            }
            solve(E, pivot, n, Us);
        }
        double error = 2.0;
        if (good) {
            memcpy(x1, x, size * sizeof(double));
            memset(err, 0, size * sizeof(double));
            for (int s = 0; s < stages; s++)
                for (int i = 0; i < n; i++) {
                    x1[i] += m[s] * U[s * n + i];
                    err[i] += e[s] * U[s * n + i];
                }
            error = error_norm(n, err, x, x1, rtol, atol);
            good = isfinite(error) && all_finite(x1, n);
        } else {
            x1[0] = NAN;
        }
        if (fixed > 0.0) {
            if (!good) {
                status = NONFINITE;
                break;
            }
            error = 0.0;
        }
        if (good && error <= 1.0) { /* the new point needs finite derivatives too: they are the next step's */
            memcpy(f_old, f, size * sizeof(double));
            memcpy(E, J, size * size * sizeof(double));
            memcpy(point, ft, size * sizeof(double));
            evaluate(&derivatives, &k, x1, last ? end : t + h, f, J, ft);
            evaluations++;
            good = all_finite(f, n) && all_finite(J, n * n) && all_finite(ft, n);
            if (!good) {
                memcpy(f, f_old, size * sizeof(double));
                memcpy(J, E, size * size * sizeof(double));
                memcpy(ft, point, size * sizeof(double));
                x1[0] = NAN;
                if (fixed > 0.0) {
                    status = NONFINITE;
                    break;
                }
            }
        }
        if (!good) {
            rejected++;
            after_rejection = 1;
            h *= 0.25;
            continue;
        }
        double factor_h = pow(error, 1.0 / order) / 0.9;
        factor_h = fmax(1.0 / 6.0, fmin(5.0, factor_h));
        if (error > 1.0) {
            rejected++;
            after_rejection = 1;
            h /= factor_h;
            continue;
        }
        steps++;
        double t1 = last ? end : t + h;
        if (dense) {
            memset(d2, 0, size * sizeof(double));
            memset(d3, 0, size * sizeof(double));
            for (int s = 0; s < stages; s++)
                for (int i = 0; i < n; i++) {
                    d2[i] += d[s] * U[s * n + i];
                    d3[i] += d[stages + s] * U[s * n + i];
                }
        } else { /* Hermite's cubic in the same form */
            for (int i = 0; i < n; i++) {
                double rise = x1[i] - x[i];
                d2[i] = h * f_old[i] - rise;
                d3[i] = 2.0 * rise - h * (f_old[i] + f[i]);
            }
        }
        double stop = t1;
        if (ng) {
            evaluate(&guard, &k, x1, t1, g, 0, 0);
            closed = closed_guard(g, ng);
            if (closed >= 0) { /* bisection on the interpolant: the last open and the first closed share of the step */
                double open = 0.0, shut = 1.0;
                for (int i = 0; i < 60 && shut - open > 1e-12; i++) {
                    double middle = 0.5 * (open + shut);
                    interpolate(n, middle, x, x1, d2, d3, point);
                    evaluate(&guard, &k, point, t + middle * h, g, 0, 0);
                    int now = closed_guard(g, ng);
                    if (now >= 0) {
                        shut = middle;
                        closed = now;
                    } else {
                        open = middle;
                    }
                }
                stop = t + open * h;
                status = GUARD;
            }
        }
        while (written < nt && times[written] <= stop) {
            double share = (times[written] - t) / h;
            if (times[written] >= t1) {
                SAMPLE(x1, t1);
            } else {
                interpolate(n, share, x, x1, d2, d3, point);
                SAMPLE(point, times[written]);
            }
        }
        if (status == GUARD) {
            interpolate(n, (stop - t) / h, x, x1, d2, d3, point);
            memcpy(x, point, size * sizeof(double));
            t = stop;
            break;
        }
        if (fixed <= 0.0) {
            double next = h / factor_h;
            if (previous_step > 0.0) { /* Gustafsson (1994): predictive control */
                double predictive = previous_step / h * pow(error * error / previous_error, 1.0 / order) / 0.9;
                predictive = fmax(1.0 / 6.0, fmin(5.0, predictive));
                next = fmin(next, h / predictive);
            }
            if (after_rejection) next = fmin(next, h);
            proposed = h < proposed ? fmax(next, proposed) : next; /* a step cut short says little */
            previous_step = h;
            previous_error = fmax(0.01, error);
            h = next;
        }
        after_rejection = 0;
        memcpy(x, x1, size * sizeof(double));
        t = t1;
    }

finish:
    close_function(&derivatives);
    close_function(&rhs);
    close_function(&output);
    close_function(&guard);
    free(memory);
    free(pivot);
    info[0] = t;
    info[1] = proposed;
    counts[0] = status;
    counts[1] = steps;
    counts[2] = rejected;
    counts[3] = evaluations;
    counts[4] = written;
    counts[5] = closed;
    return status;
}
