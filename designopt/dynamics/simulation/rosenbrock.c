/* Adaptive Rosenbrock integration of the system that system.c, which comes before this text, evaluates.

   The method comes as data (see tableau.py, which also states its equations). Each of the LANES runs side by side has
   its own time, step length and end, and a lane that ends takes the next run. Every lane decides as if it were alone.

   Nothing here is static or global: any number of threads may integrate at once. */

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum { DONE = 0, GUARD = 1, STEP_LIMIT = 2, STEP_TOO_SMALL = 3, NONFINITE = 4, RUNNING = 5 };

typedef struct {
    casadi_int stages, order;
    double gamma;
    const double *alpha, *gamma_sum, *a, *c, *m, *e, *d2, *d3;
    const casadi_int *new_f;
} method_t;

typedef struct {
    const double *x0, *u, *p, *q, *times, *rtol, *atol;
    casadi_int n_times, max_steps;
    double first_step; /* <= 0: chosen here */
    double fixed_step; /* > 0: steps of this length without error control */
    const signal_t *signals;
} problem_t;

typedef struct {
    double *t, *x, *y; /* n_times + 1 rows */
    casadi_int rows, steps, rejected, evaluations, guard, status;
    double last_step;
    double *transition; /* dx/dx0 at the end, by columns; NULL: not wanted */
} result_t;

static double clip(double value, double low, double high) { return value < low ? low : value > high ? high : value; }

/* Steps below that are noise of the time. */
static double shortest(double t, double span) { return fmax(16.0 * DBL_EPSILON * fabs(t), 1e-30 * span); }

/* A run and its lane. */
typedef struct {
    const problem_t *problem;
    result_t *out;
    double start, end, span;
    double t, h, t_new, full_h; /* the time, the step from there, its end, the step before it was shortened */
    double last_h, last_error;
    double state[NX]; /* where the run ends, once it is `stored` */
    casadi_int next;  /* the time to be stored next */
    int status, rejected, last, fixed, stored;
} lane_t;

/* Everything that changes in all lanes, in one allocation. */
typedef struct {
    real *y, *y_new, *stage, *fs, *f, *f_new, *ft, *ft_new, *J, *J_new, *E, *U, *k2, *k3, *rtol, *atol;
    real *u, *p, *q, *side; /* the arguments of system_constants; constants of the lane whose outputs are computed */
    real *transition, *J_middle, *stages_matrix; /* of the variational equation; the last with a right-hand side */
    pivot_t *stages_pivot;
    lane_t lane[LANES];
} run_t;

static void exchange(real **a, real **b) {
    real *first = *a;
    *a = *b;
    *b = first;
}

static void dense(const method_t *me, run_t *r) {
    for (int i = 0; i < NX; i++) {
        r->k2[i] = r->k3[i] = ALL(0.0);
        for (casadi_int k = 0; k < me->stages; k++) {
            r->k2[i] += me->d2[k] * r->U[k * NX + i];
            r->k3[i] += me->d3[k] * r->U[k * NX + i];
        }
    }
}

/* y(theta) of lane l between the ends of a step: see tableau.py. */
static void between(const run_t *r, int l, double theta, double *y) {
    for (int i = 0; i < NX; i++) {
        const double y0 = LANE(r->y[i], l), y1 = LANE(r->y_new[i], l), k2 = LANE(r->k2[i], l), k3 = LANE(r->k3[i], l);
        y[i] = (1.0 - theta) * y0 + theta * (y1 + (1.0 - theta) * (k2 + theta * k3));
    }
}

static void put(result_t *r, double t, const double *x) {
    r->t[r->rows] = t;
    memcpy(r->x + r->rows * NX, x, NX * sizeof(double));
    r->rows++;
}

/* The run of lane l ends at y. */
static void end_at(lane_t *a, const real *y, int l) {
    for (int i = 0; i < NX; i++) a->state[i] = LANE(y[i], l);
    a->stored = 1;
}

/* The samples up to the time `end` (without it), from the step of lane l. */
static void put_until(run_t *r, int l, double end, int with_end) {
    lane_t *a = r->lane + l;
    const double *times = a->problem->times;
    for (; a->next < a->problem->n_times && (times[a->next] < end || (with_end && times[a->next] == end)); a->next++) {
        double x[NX];
        between(r, l, (times[a->next] - a->t) / a->h, x);
        put(a->out, times[a->next], x);
    }
}

/* The outputs at all rows of the run of lane l, LANES rows at a time. */
static void put_outputs(run_t *r, const space_t *s, int l) {
#if NY > 0
    const result_t *out = r->lane[l].out;
    space_t side = *s;
    real x[NX], y[NY], t = ALL(0.0);
    side.constants = r->side;
    for (int i = 0; i < NC; i++) r->side[i] = ALL(LANE(s->constants[i], l));
#if NW > 0
    for (int k = 0; k < LANES; k++) follow_signals(&side, k, r->lane[l].problem->signals);
#endif
    for (casadi_int row = 0; row < out->rows; row += LANES) {
        for (int k = 0; k < LANES; k++) {
            const casadi_int at = row + k < out->rows ? row + k : row;
            LANE(t, k) = out->t[at];
            for (int i = 0; i < NX; i++) LANE(x[i], k) = out->x[at * NX + i];
        }
#if UNKNOWNS_IN_OUTPUT
        find_unknowns(&side, x, t);
#endif
        call(system_output, &side, x, t, y, NULL, NULL);
        for (int k = 0; k < LANES && row + k < out->rows; k++)
            for (int i = 0; i < NY; i++) out->y[(row + k) * NY + i] = LANE(y[i], k);
    }
#else
    (void)r, (void)s, (void)l;
#endif
}

/* The length of a first step: one hundredth of the time in which the state would change by its own size. */
static double initial_step(const run_t *r, int l) {
    const lane_t *a = r->lane + l;
    double size = 0.0, speed = 0.0;
    for (int i = 0; i < NX; i++) {
        const double x = LANE(r->y[i], l), f = LANE(r->f[i], l);
        const double scale = a->problem->atol[i] + a->problem->rtol[i] * fabs(x);
        size += (x / scale) * (x / scale);
        speed += (f / scale) * (f / scale);
    }
    const double h = size > 1e-10 && speed > 1e-10 ? 0.01 * sqrt(size / speed) : 1e-6 * a->span;
    return clip(h, 1e-20 * a->span, 0.1 * a->span);
}

/* Put a run into lane l. */
static void load(run_t *r, space_t *s, int l, const problem_t *problem, result_t *out) {
    const double start = problem->times[0], end = problem->times[problem->n_times - 1];
    r->lane[l] = (lane_t){.problem = problem, .out = out, .start = start, .end = end, .span = end - start, .t = start,
                          .next = 1, .status = RUNNING, .fixed = problem->fixed_step > 0.0};
    out->rows = out->steps = out->rejected = out->evaluations = 0;
    out->guard = -1;
    for (int i = 0; i < NX; i++) {
        LANE(r->y[i], l) = problem->x0[i];
        LANE(r->rtol[i], l) = problem->rtol[i];
        LANE(r->atol[i], l) = problem->atol[i];
    }
    for (int i = 0; i < NU; i++) LANE(r->u[i], l) = problem->u[i];
    for (int i = 0; i < NP; i++) LANE(r->p[i], l) = problem->p[i];
    for (int i = 0; i < NQ; i++) LANE(r->q[i], l) = problem->q[i];
    for (int i = 0; i < NX * NX && r->transition; i++) LANE(r->transition[i], l) = i % (NX + 1) == 0;
    put(out, start, problem->x0);
#if NW > 0
    follow_signals(s, l, problem->signals);
#else
    (void)s;
#endif
}

/* The first point of the runs that have just been put into lanes. */
static void begin(run_t *r, space_t *s, const int *fresh) {
    real t = ALL(0.0);
    mask which = ALL_BITS(-1LL);
    for (int l = 0; l < LANES; l++) LANE(t, l) = r->lane[l].t;
    s->arg[0] = r->u, s->arg[1] = r->p, s->arg[2] = r->q;
    s->res[0] = s->constants;
    system_constants(s->arg, s->res, s->iw, s->w, 0);
    const mask outside = broken_guard(s, r->y, t, &which);
    const mask bad = derivatives(s, r->y, t, r->f, r->J, r->ft);
    for (int l = 0; l < LANES; l++) {
        lane_t *a = r->lane + l;
        if (!fresh[l]) continue;
        if (LANE(outside, l)) {
            a->out->guard = LANE(which, l);
            a->status = GUARD;
            continue;
        }
        a->out->evaluations++;
        if (LANE(bad, l)) {
            a->status = NONFINITE;
            continue;
        }
        a->h = a->fixed ? a->problem->fixed_step : a->problem->first_step > 0.0 ? a->problem->first_step : initial_step(r, l);
        a->out->last_step = a->h;
    }
}

/* The next step of a run: h and t_new, or the status with which it ends. */
static void propose(lane_t *a) {
    const problem_t *pb = a->problem;
    const double t = a->t, end = a->end;
    if (a->out->steps + a->out->rejected >= pb->max_steps) {
        a->status = STEP_LIMIT;
        return;
    }
    if (!a->fixed) a->h = fmax(a->h, shortest(t, a->span));
    a->full_h = a->h;
    a->t_new = t + a->h;
    a->last = 0;
    if (a->fixed) a->t_new = a->start + (double)(a->out->steps + 1) * pb->fixed_step;
    if (a->t_new >= end - (a->fixed ? 1e-9 * pb->fixed_step : 0.01 * a->h)) {
        a->t_new = end;
        a->last = 1;
    } else if (!a->fixed && t + 2.0 * a->h > end) {
        a->t_new = t + 0.5 * (end - t); /* two equal steps rather than a short last one */
    }
    a->h = a->t_new - t;
    if (!(a->h > 0.0)) a->status = STEP_TOO_SMALL; /* a fixed step that the numbers for time cannot resolve */
}

/* One step in all lanes. */
typedef struct {
    real t, h, error, evaluations;
    mask running, fixed, broken, outside, guard; /* not finite; a stage behind a guard, and which */
} step_t;

/* From (t, y) with f, J and ft known there: y_new, the stages U and the norm of the error. */
static void step(const method_t *me, run_t *r, space_t *s, step_t *st) {
    pivot_t pivot[NX];
    const real per_h = 1.0 / st->h, diagonal = per_h / me->gamma;
    for (int i = 0; i < NX * NX; i++) r->E[i] = -r->J[i];
    for (int i = 0; i < NX; i++) r->E[i * NX + i] += diagonal;
    st->evaluations = ALL(0.0);
    st->broken = factor(NX, r->E, pivot) & st->running;
    st->outside = ALL_BITS(0LL);
    mask going = st->running & ~st->broken;
    const real *f = r->f;
    for (casadi_int k = 0; k < me->stages && any(going); k++) {
        const double *a = me->a + k * me->stages, *c = me->c + k * me->stages;
        real *U = r->U + k * NX;
        if (k > 0 && me->new_f[k]) {
            memcpy(r->stage, r->y, NX * sizeof(real));
            for (casadi_int j = 0; j < k; j++)
                if (a[j] != 0.0)
                    for (int i = 0; i < NX; i++) r->stage[i] += a[j] * r->U[j * NX + i];
            const real ts = st->t + me->alpha[k] * st->h;
            mask which = ALL_BITS(-1LL);
            const mask behind = broken_guard(s, r->stage, ts, &which) & going;
            if (any(behind)) {
                st->guard = (st->guard & ~behind) | (which & behind);
                st->outside |= behind;
                going &= ~behind;
                if (!any(going)) return;
            }
            rates(s, r->stage, ts, r->fs);
            st->evaluations += only(going, ALL(1.0));
            f = r->fs;
        }
        const real weight = st->h * me->gamma_sum[k];
        for (int i = 0; i < NX; i++) U[i] = f[i] + weight * r->ft[i];
        for (casadi_int j = 0; j < k; j++)
            if (c[j] != 0.0) {
                const real q = c[j] * per_h;
                for (int i = 0; i < NX; i++) U[i] += q * r->U[j * NX + i];
            }
        solve(NX, r->E, pivot, U);
        const mask bad = not_finite(U, NX) & going;
        st->broken |= bad;
        going &= ~bad;
    }
    real sum = ALL(0.0);
    for (int i = 0; i < NX; i++) {
        real y = r->y[i], e = ALL(0.0);
        for (casadi_int k = 0; k < me->stages; k++) {
            y += me->m[k] * r->U[k * NX + i];
            e += me->e[k] * r->U[k * NX + i];
        }
        r->y_new[i] = y;
        const real share = e / (r->atol[i] + r->rtol[i] * larger(magnitude(r->y[i]), magnitude(y)));
        sum += share * share;
    }
    st->error = only(~st->fixed, root(sum / (double)NX));
    st->broken |= (not_finite(r->y_new, NX) | not_finite(&st->error, 1)) & going;
}

/* The variational equation d(Phi)/dt = J(t) Phi over an accepted step: Lobatto IIIC with three stages (order 4, L-stable;
   Hairer & Wanner 1996, table IV.5.8), J at both ends as known and in the middle on the solution in between. Phi is by
   columns; it advances in the lanes `accepted`. The lanes in which it is not finite. */
static mask advance_transition(const method_t *me, run_t *r, space_t *s, const step_t *st, mask accepted) {
    enum { N = 3 * NX };
    static const double A[3][3] = {{1.0 / 6, -1.0 / 3, 1.0 / 6}, {1.0 / 6, 5.0 / 12, -1.0 / 12}, {1.0 / 6, 2.0 / 3, 1.0 / 6}};
    const real *J[3] = {r->J, r->J_middle, r->J_new};
    real *E = r->stages_matrix, *column = E + N * N, *Phi = r->transition;
    dense(me, r);
    for (int i = 0; i < NX; i++) r->stage[i] = 0.5 * r->y[i] + 0.5 * (r->y_new[i] + 0.5 * (r->k2[i] + 0.5 * r->k3[i]));
    mask bad = derivatives(s, r->stage, st->t + 0.5 * st->h, r->fs, r->J_middle, column);
    for (int l = 0; l < 3; l++)
        for (int j = 0; j < NX; j++)
            for (int k = 0; k < 3; k++)
                for (int i = 0; i < NX; i++)
                    E[(l * NX + j) * N + k * NX + i] = (k == l && i == j) - (st->h * A[k][l]) * J[l][j * NX + i];
    bad |= factor(N, E, r->stages_pivot);
    if (LANES == 1 && any(bad)) return bad;
    for (int j = 0; j < NX; j++) {
        for (int k = 0; k < 3; k++) memcpy(column + k * NX, Phi + j * NX, NX * sizeof(real));
        solve(N, E, r->stages_pivot, column);
        for (int i = 0; i < NX; i++) Phi[j * NX + i] = choose(accepted, column[2 * NX + i], Phi[j * NX + i]);
    }
    return bad | not_finite(Phi, NX * NX);
}

/* The step of lane l ends behind the guard `guard`: bisection on the solution in between, where the run ends. */
static void end_at_guard(run_t *r, space_t *s, int l, casadi_int guard) {
    lane_t *a = r->lane + l;
    /* A guard that only stages meet is located to 1e-12 of the span, one between two steps much finer. */
    const double resolution = 1e-12 * a->span;
    double low = 0.0, high = 1.0;
    while ((high - low) * a->h > 1e-3 * resolution && high - low > DBL_EPSILON) {
        const double middle = 0.5 * (low + high);
        mask which = ALL_BITS(-1LL);
        real t = ALL(a->t + middle * a->h);
        double x[NX];
        between(r, l, middle, x);
        for (int i = 0; i < NX; i++) r->stage[i] = ALL(x[i]);
        const mask broken = broken_guard(s, r->stage, t, &which);
        if (LANE(broken, l)) {
            high = middle;
            guard = LANE(which, l);
        } else {
            low = middle;
        }
    }
    const double at = a->t + low * a->h;
    put_until(r, l, at, 1);
    between(r, l, low, a->state);
    a->t = at;
    a->out->steps++;
    a->out->guard = guard;
    a->stored = 1;
    a->status = GUARD;
}

/* Steps in all lanes until the last run has ended. */
static void integrate(const problem_t *problems, const method_t *me, result_t *results, casadi_int count, run_t *r,
                      space_t *s) {
    const double power = 1.0 / (double)me->order;
    casadi_int waiting = 0;
    for (int l = 0; l < LANES; l++) r->lane[l].status = DONE;
    for (;;) {
        step_t st = {.t = ALL(0.0), .h = ALL(1.0)};
        real last_error = ALL(1.0), t_new = ALL(0.0);
        mask which = ALL_BITS(-1LL), behind = ALL_BITS(0LL), bad = ALL_BITS(0LL), accepted = ALL_BITS(0LL);
        int fresh[LANES] = {0}, any_fresh = 0, samples = 0, transitions = 0;
        for (int l = 0; l < LANES; l++)
            if (r->lane[l].status != RUNNING && waiting < count) {
                load(r, s, l, problems + waiting, results + waiting);
                waiting++;
                fresh[l] = any_fresh = 1;
            }
        if (any_fresh) begin(r, s, fresh);
        for (int l = 0; l < LANES; l++) {
            lane_t *a = r->lane + l;
            if (a->status != RUNNING) continue;
            propose(a);
            if (a->status != RUNNING) { /* the others step on */
                end_at(a, r->y, l);
                continue;
            }
            LANE(st.running, l) = -1;
            LANE(st.fixed, l) = -(long long)a->fixed;
            LANE(st.t, l) = a->t;
            LANE(st.h, l) = a->h;
            LANE(t_new, l) = a->t_new;
            LANE(last_error, l) = a->last_error;
        }
        if (any(st.running)) {
            step(me, r, s, &st);
            const mask good = st.running & ~st.broken & ~st.outside & AT_MOST(st.error, ALL(1.0));
            if (any(good)) {
                behind = broken_guard(s, r->y_new, t_new, &which) & good;
                if (any(good & ~behind)) bad = derivatives(s, r->y_new, t_new, r->f_new, r->J_new, r->ft_new);
            }
            const real floor = larger(st.error, ALL(1e-10));
            const real factor = 0.9 * real_exp(-power * real_log(floor));
            const real second = 0.9 * real_exp(power * real_log(last_error / (floor * floor)));
            for (int l = 0; l < LANES; l++) {
                const lane_t *a = r->lane + l;
                if (LANE(good, l) && (LANE(behind, l) || (a->next < a->problem->n_times && a->problem->times[a->next] <= a->t_new)))
                    samples = 1;
            }
            if (samples) dense(me, r);
            for (int l = 0; l < LANES; l++) {
                lane_t *a = r->lane + l;
                result_t *out = a->out;
                if (!LANE(st.running, l)) continue;
                const double error = LANE(st.error, l);
                const int is_outside = LANE(st.outside, l) != 0;
                int is_broken = LANE(st.broken, l) != 0;
                double shrink = 0.0; /* > 0: the step is not accepted */
                out->evaluations += (casadi_int)LANE(st.evaluations, l);
                if (is_outside) {
                    if (a->h <= fmax(1e-12 * a->span, 64.0 * DBL_EPSILON * fabs(a->t))) {
                        out->guard = LANE(st.guard, l);
                        a->status = GUARD;
                    }
                    shrink = 0.5;
                } else if (is_broken) {
                    shrink = 0.25;
                } else if (!LANE(good, l)) {
                    shrink = clip(LANE(factor, l), 0.2, 0.9);
                } else if (LANE(behind, l)) {
                    end_at_guard(r, s, l, LANE(which, l));
                } else {
                    out->evaluations++;
                    if (LANE(bad, l)) {
                        is_broken = 1;
                        shrink = 0.25;
                    }
                }
                if (a->status != RUNNING) continue;
                if (shrink > 0.0) {
                    out->rejected++;
                    a->h *= shrink;
                    a->rejected = 1;
                    if (a->fixed || a->h < shortest(a->t, a->span)) {
                        a->status = is_broken ? NONFINITE : is_outside ? GUARD : STEP_TOO_SMALL;
                        if (a->status == GUARD) out->guard = LANE(st.guard, l);
                    }
                    continue;
                }
                LANE(accepted, l) = -1;
                transitions |= out->transition != NULL;
                out->steps++;
                put_until(r, l, a->t_new, 0);
                if (a->next < a->problem->n_times && a->problem->times[a->next] == a->t_new) {
                    double x[NX];
                    for (int i = 0; i < NX; i++) x[i] = LANE(r->y_new[i], l);
                    put(out, a->t_new, x);
                    a->next++;
                }
            }
            bad = ALL_BITS(0LL);
            if (transitions) bad = advance_transition(me, r, s, &st, accepted);
            if (any(st.running & ~accepted)) {
                for (int i = 0; i < NX && any(accepted); i++) {
                    r->y[i] = choose(accepted, r->y_new[i], r->y[i]);
                    r->f[i] = choose(accepted, r->f_new[i], r->f[i]);
                    r->ft[i] = choose(accepted, r->ft_new[i], r->ft[i]);
                    for (int j = 0; j < NX; j++)
                        r->J[i * NX + j] = choose(accepted, r->J_new[i * NX + j], r->J[i * NX + j]);
                }
            } else {
                exchange(&r->y, &r->y_new);
                exchange(&r->f, &r->f_new);
                exchange(&r->J, &r->J_new);
                exchange(&r->ft, &r->ft_new);
            }
            for (int l = 0; l < LANES; l++) {
                lane_t *a = r->lane + l;
                if (!LANE(accepted, l)) continue;
                a->t = a->t_new;
                if (a->out->transition && LANE(bad, l)) {
                    a->status = NONFINITE;
                    continue;
                }
                if (a->fixed) {
                    a->h = a->problem->fixed_step;
                } else {
                    /* Predictive control of Gustafsson (1994), as Hairer & Wanner (1996), section IV.8, equation 8.25. */
                    double growth = LANE(factor, l);
                    if (a->last_h > 0.0) growth = fmin(growth, (a->h / a->last_h) * LANE(second, l));
                    a->last_h = a->h;
                    a->last_error = fmax(LANE(st.error, l), 1e-2);
                    double proposed = a->h * clip(growth, 0.2, 6.0);
                    if (a->rejected) proposed = fmin(proposed, a->h);
                    /* A step shortened to end in time says nothing against the full length. */
                    a->h = a->h < a->full_h ? fmax(proposed, a->full_h) : proposed;
                    a->rejected = 0;
                }
                a->out->last_step = a->h;
                if (a->last || a->next >= a->problem->n_times) a->status = DONE;
            }
        }
        int running = 0;
        for (int l = 0; l < LANES; l++) {
            lane_t *a = r->lane + l;
            if (!a->out) continue;
            if (a->status == RUNNING) {
                running = 1;
                continue;
            }
            if (a->status != DONE && a->t > a->out->t[a->out->rows - 1]) {
                if (!a->stored) end_at(a, r->y, l);
                put(a->out, a->t, a->state);
            }
            for (int i = 0; i < NX * NX && a->out->transition; i++) a->out->transition[i] = LANE(r->transition[i], l);
            put_outputs(r, s, l);
            a->out->status = a->status;
            a->out = NULL;
        }
        if (!running && waiting >= count) return;
    }
}

/* The next `count` numbers of a block of memory. */
static real *part(real **block, size_t count) {
    real *first = *block;
    *block += count;
    return first;
}

/* Integrate `count` problems, each over its times; returns 0 without memory. */
EXPORT int designopt_simulate(const problem_t *problems, const method_t *me, result_t *results, casadi_int count) {
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
    int transitions = 0;
    for (casadi_int i = 0; i < count; i++) transitions |= results[i].transition != NULL;
    const size_t matrix = NX * NX, variational = transitions ? 11 * matrix + 3 * NX : 0;
    const size_t partial[] = {(size_t)NS * (NX > NS ? NX : NS), NS, NX * NX, NX * NS, NX}; /* results of system_fj */
    const size_t residual = NS > 0 ? NS * NS + NS + NS * (NX + 1) + partial[0] + NS + matrix + NX * NS + NX : 0;
    const size_t constants = NC + 2 * NW, inputs = NU + NP + NQ;
    const size_t reals = (12 + (size_t)me->stages) * NX + 3 * matrix + 2 * constants + inputs + residual + variational +
                         (size_t)n_w + 1;
    char *memory = calloc(reals + 1, sizeof(real));
    const real **arg = malloc((size_t)n_arg * sizeof *arg);
    real **res = malloc((size_t)n_res * sizeof *res);
    casadi_int *iw = malloc((size_t)(n_iw + 1) * sizeof *iw);
    const int success = memory && arg && res && iw;
    if (success) {
        run_t r = {0};
        pivot_t pivots[NS + 3 * NX + 1];
        real *block = (real *)(memory + (sizeof(real) - (uintptr_t)memory % sizeof(real)) % sizeof(real));
        real **const vectors[] = {&r.y, &r.y_new, &r.stage, &r.fs, &r.f, &r.f_new, &r.ft, &r.ft_new, &r.k2, &r.k3,
                                  &r.rtol, &r.atol};
        for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) *vectors[i] = part(&block, NX);
        r.U = part(&block, (size_t)me->stages * NX);
        r.J = part(&block, matrix);
        r.J_new = part(&block, matrix);
        r.E = part(&block, matrix);
        r.u = part(&block, NU);
        r.p = part(&block, NP);
        r.q = part(&block, NQ);
        r.side = part(&block, constants);
        space_t s = {.arg = arg, .res = res, .iw = iw, .constants = part(&block, constants)};
#if NS > 0
        s.M = part(&block, NS * NS);
        s.s = part(&block, NS);
        s.dR = part(&block, NS * (NX + 1));
        for (int i = 0; i < 5; i++) s.part[i] = part(&block, partial[i]);
        s.pivot = pivots + 3 * NX;
#endif
        if (transitions) {
            r.transition = part(&block, matrix);
            r.J_middle = part(&block, matrix);
            r.stages_matrix = part(&block, 9 * matrix + 3 * NX);
        }
        r.stages_pivot = pivots;
        s.w = block;
        integrate(problems, me, results, count, &r, &s);
    }
    free(memory);
    free(arg);
    free(res);
    free(iw);
    return success;
}
