/* The system of an integration and its linear algebra, of LANES runs side by side in the lanes of a `real` (see
   elementary.c). A lane has the same bits beside any other runs.

   The text before defines the sizes NX (states), NY (outputs), NG (guards), NC (constants of a run), NS (unknowns of a
   residual form, 0 for an explicit one), casadi_int and the functions

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

   M is factored with numbers; J = f_x - f_s M^-1 R_x and df/dt = f_t - f_s M^-1 R_t. */

#ifdef LARGE
#pragma GCC optimize("O2") /* the text before is too large for it (see compile.py), these loops gain by it */
#endif

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A signal: knots (pieces + 1) and coefficients (pieces, 4) of powers 3 to 0 of the time since the knot before. */
typedef struct {
    const double *knots, *coefficients;
    casadi_int pieces;
} signal_t;

typedef int (*model_f)(const casadi_real **, casadi_real **, casadi_int *, casadi_real *, int);

typedef struct {
    mask row;  /* the row that is exchanged with this one, of each lane */
    int moved; /* whether any lane exchanges */
} pivot_t;

/* Work space of the generated functions. Their first arguments and results are set for each call. */
typedef struct {
    const real **arg;
    real **res;
    casadi_int *iw;
    real *w, *constants;
#if NW > 0
    const signal_t *signals[LANES];
    casadi_int piece[LANES][NW]; /* of each signal, that of the time looked at last */
    double at[LANES];            /* that time */
#endif
#if NS > 0
    real *M, *s, *dR; /* factors of M by columns, the unknowns, (R_x, R_t) by columns */
    real *part[5];    /* nonzeros of the results of system_fj */
    pivot_t *pivot;
#endif
} space_t;

#if NW > 0
/* Values and rates of all signals at t, behind the constants. Beyond its ends a signal goes on as its last cubic. */
static void follow(space_t *s, real t) {
    real *values = s->constants + NC, *rates = values + NW;
    for (int l = 0; l < LANES; l++) {
        const double at = LANE(t, l);
        if (!s->signals[l] || at == s->at[l]) continue;
        for (int i = 0; i < NW; i++) {
            const signal_t *w = s->signals[l] + i;
            casadi_int k = s->piece[l][i];
            while (k > 0 && at < w->knots[k]) k--;
            while (k < w->pieces - 1 && at >= w->knots[k + 1]) k++;
            s->piece[l][i] = k;
            const double *c = w->coefficients + 4 * k, d = at - w->knots[k];
            LANE(values[i], l) = ((c[0] * d + c[1]) * d + c[2]) * d + c[3];
            LANE(rates[i], l) = (3.0 * c[0] * d + 2.0 * c[1]) * d + c[2];
        }
        s->at[l] = at;
    }
}

static void follow_signals(space_t *s, int l, const signal_t *signals) {
    s->signals[l] = signals;
    memset(s->piece[l], 0, sizeof s->piece[l]);
    s->at[l] = NAN;
}
#endif

static void call(model_f f, space_t *s, const real *x, real t, real *r0, real *r1, real *r2) {
#if NW > 0
    follow(s, t);
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

static mask not_finite(const real *v, int n) {
    real sum = ALL(0.0); /* stays 0 exactly as long as every entry is finite */
    for (int i = 0; i < n; i++) sum += v[i] * 0.0;
    return ~EQUAL(sum, ALL(0.0));
}

/* The lanes with a guard that is not positive (NaN counts), and which is the first one. */
static mask broken_guard(space_t *s, const real *x, real t, mask *which) {
    mask broken = ALL_BITS(0LL);
#if NG > 0
    real g[NG];
    call(system_guard, s, x, t, g, NULL, NULL);
    for (int i = NG - 1; i >= 0; i--) {
        const mask m = ~LESS(ALL(0.0), g[i]);
        *which = (*which & ~m) | (ALL_BITS((long long)i) & m);
        broken |= m;
    }
#else
    (void)s, (void)x, (void)t, (void)which;
#endif
    return broken;
}

/* LU factors of E (n x n by columns) with partial pivoting; the lanes in which E is singular or not finite. */
INLINE mask factor(const int n, real *E, pivot_t *pivot) {
    mask singular = ALL_BITS(0LL);
    for (int k = 0; k < n; k++) {
        real *column = E + k * n, largest = magnitude(column[k]);
        mask best = ALL_BITS((long long)k);
        for (int i = k + 1; i < n; i++) {
            const real size = magnitude(column[i]);
            const mask m = LESS(largest, size);
            largest = choose(m, size, largest);
            best = (best & ~m) | (ALL_BITS((long long)i) & m);
        }
        pivot[k].row = best;
        pivot[k].moved = any(~SAME(best, ALL_BITS((long long)k)));
        for (int i = k + 1; i < n && pivot[k].moved; i++) {
            const mask m = SAME(best, ALL_BITS((long long)i));
            if (!any(m)) continue;
            for (int j = k; j < n; j++) {
                const real f = E[j * n + k];
                E[j * n + k] = choose(m, E[j * n + i], f);
                E[j * n + i] = choose(m, f, E[j * n + i]);
            }
        }
        const real d = column[k];
        singular |= EQUAL(d, ALL(0.0)) | ~LESS(magnitude(d), HUGE_REAL);
        if (LANES == 1 && any(singular)) return singular;
        column[k] = 1.0 / d;
        for (int i = k + 1; i < n; i++) column[i] *= column[k];
        for (int j = k + 1; j < n; j++) {
            real *other = E + j * n;
            const mask m = ~EQUAL(other[k], ALL(0.0));
            if (LANES == 1 && !any(m)) continue;
            for (int i = k + 1; i < n; i++) other[i] -= only(m, column[i] * other[k]);
        }
    }
    return singular;
}

INLINE void solve(const int n, const real *E, const pivot_t *pivot, real *b) {
    for (int k = 0; k < n; k++) {
        for (int i = k + 1; i < n && pivot[k].moved; i++) {
            const mask m = SAME(pivot[k].row, ALL_BITS((long long)i));
            const real f = b[k];
            b[k] = choose(m, b[i], f);
            b[i] = choose(m, f, b[i]);
        }
        for (int i = k + 1; i < n; i++) b[i] -= E[k * n + i] * b[k];
    }
    for (int k = n - 1; k >= 0; k--) {
        b[k] *= E[k * n + k];
        for (int i = 0; i < k; i++) b[i] -= E[k * n + i] * b[k];
    }
}

#if NS > 0
/* A dense matrix by columns from its nonzeros, as a sparsity of CasADi says: rows, columns, where each column begins,
   rows of the nonzeros; or rows, columns, 1 for a dense one. */
static void spread(const casadi_int *sparsity, const real *nonzeros, real *dense) {
    const casadi_int rows = sparsity[0], columns = sparsity[1], *begin = sparsity + 2, *row = begin + columns + 1;
    if (begin[0] == 1) {
        memcpy(dense, nonzeros, (size_t)(rows * columns) * sizeof(real));
        return;
    }
    memset(dense, 0, (size_t)(rows * columns) * sizeof(real));
    for (casadi_int j = 0; j < columns; j++)
        for (casadi_int e = begin[j]; e < begin[j + 1]; e++) dense[j * rows + row[e]] = nonzeros[e];
}

/* Factors of M; a symmetric definite one has its lower triangle alone and becomes L D L'. The lanes in which it is
   singular. */
INLINE mask factor_mass(real *M, pivot_t *pivot) {
#if SYMMETRIC
    mask singular = ALL_BITS(0LL);
    (void)pivot;
    for (int k = 0; k < NS; k++) {
        real *column = M + k * NS, d = column[k];
        singular |= EQUAL(d, ALL(0.0)) | ~LESS(magnitude(d), HUGE_REAL);
        if (LANES == 1 && any(singular)) return singular;
        d = 1.0 / d;
        for (int j = k + 1; j < NS; j++) {
            real *other = M + j * NS, f = column[j] * d;
            for (int i = j; i < NS; i++) other[i] -= f * column[i];
        }
        for (int i = k + 1; i < NS; i++) column[i] *= d;
        column[k] = d;
    }
    return singular;
#else
    return factor(NS, M, pivot);
#endif
}

INLINE void solve_mass(const real *M, const pivot_t *pivot, real *b) {
#if SYMMETRIC
    (void)pivot;
    for (int k = 0; k < NS; k++)
        for (int i = k + 1; i < NS; i++) b[i] -= M[k * NS + i] * b[k];
    for (int k = NS - 1; k >= 0; k--) {
        real sum = b[k] * M[k * NS + k];
        for (int i = k + 1; i < NS; i++) sum -= M[k * NS + i] * b[i];
        b[k] = sum;
    }
#else
    solve(NS, M, pivot, b);
#endif
}

/* The unknowns at (x, t), and M factored; the lanes in which M is singular or not finite, where the unknowns are NaN. */
static mask find_unknowns(space_t *s, const real *x, real t) {
    call(system_linear, s, x, t, s->part[0], s->s, NULL);
    spread(system_linear_sparsity_out(0), s->part[0], s->M);
    const mask singular = factor_mass(s->M, s->pivot);
    if (!(LANES == 1 && any(singular))) {
        for (int i = 0; i < NS; i++) s->s[i] = -s->s[i];
        solve_mass(s->M, s->pivot, s->s);
    }
    for (int i = 0; i < NS; i++) s->s[i] = choose(singular, NOT_A_REAL, s->s[i]);
    return singular;
}
#endif

/* f = xdot; not finite where there is none. */
static void rates(space_t *s, const real *x, real t, real *f) {
#if NS > 0
    const mask singular = find_unknowns(s, x, t);
#endif
    call(system_f, s, x, t, f, NULL, NULL);
#if NS > 0
    for (int i = 0; i < NX; i++) f[i] = choose(singular, NOT_A_REAL, f[i]);
#endif
}

/* f, J = df/dx and df/dt; the lanes in which they are not finite. */
static mask derivatives(space_t *s, const real *x, real t, real *f, real *J, real *ft) {
    mask bad = ALL_BITS(0LL);
#if NS > 0
    const casadi_int *f_s = system_fj_sparsity_out(3), *begin = f_s + 2, *row = begin + NS + 1;
    const int is_dense = begin[0] == 1;
    bad = find_unknowns(s, x, t);
    if (LANES == 1 && any(bad)) return bad;
    call(system_f, s, x, t, f, NULL, NULL);
    s->res[3] = s->part[3];
    s->res[4] = s->part[4];
    call(system_fj, s, x, t, s->part[0], s->part[1], s->part[2]);
    spread(system_fj_sparsity_out(0), s->part[0], s->dR);
    spread(system_fj_sparsity_out(1), s->part[1], s->dR + NX * NS);
    spread(system_fj_sparsity_out(2), s->part[2], J);
    spread(system_fj_sparsity_out(4), s->part[4], ft);
    for (int j = 0; j <= NX; j++) {
        real *ds = s->dR + j * NS, *column = j < NX ? J + j * NX : ft;
        solve_mass(s->M, s->pivot, ds);
        for (casadi_int k = 0, e = 0; k < NS; k++)
            for (casadi_int end = is_dense ? e + NX : begin[k + 1]; e < end; e++)
                column[is_dense ? e - k * NX : row[e]] -= s->part[3][e] * ds[k];
    }
#else
    call(system_fj, s, x, t, f, J, ft);
#endif
    return bad | not_finite(f, NX) | not_finite(J, NX * NX) | not_finite(ft, NX);
}
