/* The iterations: initial iterate, barrier parameter, termination. */

static const double KAPPA_EPSILON = 10.0, KAPPA_MU = 0.2, THETA_MU = 1.5, MIN_TAU = 0.99, KAPPA_SIGMA = 1e10;
static const double S_MAX = 100.0, RUNS_AWAY = 1e10;
/* Larger barrier parameters are reduced at the multiple `kappa_early` of them, because steps to their exact minimum do
   not help. Smaller ones are reduced at KAPPA_EPSILON, which determines the last digits. */
static const double LARGE_BARRIER = 1e-5;
/* Maximum length of a short step, in scaled variables: a quarter of the range. */
static const double SHORT_STEP = 0.5;
enum { PATIENCE = 15 };
/* Maximum violations without the scales of cost and equations, because small scales hide large violations (IPOPT's
   constr_viol_tol, dual_inf_tol and compl_inf_tol, and those of its acceptable level). */
static const double UNSCALED_ROWS = 1e-4, UNSCALED_DUAL = 1.0, UNSCALED_COMPLEMENTARITY = 1e-4;
static const double ACCEPTABLE_ROWS = 1e-2, ACCEPTABLE_COMPLEMENTARITY = 1e-2;

/* The largest violations of the optimality conditions (equations 5 and 6), each with the scale of its multipliers. */
typedef struct {
    double dual, primal, complementarity, dual_scale, complementarity_scale;
} Errors;

/* The largest violation of the complementarity of limits and multipliers. */
static double complementarity_of(const Interior *t, double mu) {
    const double *x = t->g.x, *low = t->g.low, *up = t->g.up, *zl = t->g.zl, *zu = t->g.zu;
    int64_t largest = 0, of_low, of_up;
    for (int i = 0; i < t->g.n; i++) {
        double at_low = (x[i] - low[i]) * zl[i] - mu, at_up = (up[i] - x[i]) * zu[i] - mu;
        of_low = bits_of_size(has_low(t, i) ? at_low : 0.0), of_up = bits_of_size(has_up(t, i) ? at_up : 0.0);
        largest = of_low > largest ? of_low : largest, largest = of_up > largest ? of_up : largest;
    }
    return of_bits(largest);
}

/* The errors for a barrier parameter, on which the complementarity alone depends. */
static Errors errors_of(const Interior *t, double mu) {
    const RunData *g = &t->g;
    Errors e = {0.0, largest_of(t->c, g->m), complementarity_of(t, mu), 1.0, 1.0};
    double sum = 0.0;
    int64_t dual = 0;
    for (int i = 0; i < g->n; i++) {
        int64_t bits = bits_of_size(t->dual[i] - g->zl[i] + g->zu[i]);
        dual = bits > dual ? bits : dual;
    }
    for (int i = 0; i < g->n; i++) sum += g->zl[i] + g->zu[i];
    double all = (sum + sum_of(g->y, g->m)) / larger(g->m + t->limits, 1);
    e.dual = of_bits(dual);
    e.dual_scale = larger(S_MAX, all) / S_MAX;
    e.complementarity_scale = larger(S_MAX, sum / larger(t->limits, 1)) / S_MAX;
    return e;
}

static double of_multipliers(Errors e) {
    return isfinite(e.dual) ? larger(e.dual / e.dual_scale, e.complementarity / e.complementarity_scale) : INFINITY;
}

/* The largest violation of the equations, not scaled. */
static double unscaled_rows(const Interior *t) {
    double largest = 0.0;
    for (int i = 0; i < t->g.m; i++) largest = larger(largest, fabs(t->c[i]) / t->row_scale[i]);
    return largest;
}

static int holds_unscaled(const Interior *t, Errors e) {
    return unscaled_rows(t) <= UNSCALED_ROWS && e.dual <= UNSCALED_DUAL * t->cost_scale &&
           e.complementarity <= UNSCALED_COMPLEMENTARITY * t->cost_scale;
}

static int acceptable_unscaled(const Interior *t, Errors e) {
    return unscaled_rows(t) <= ACCEPTABLE_ROWS && e.complementarity <= ACCEPTABLE_COMPLEMENTARITY * t->cost_scale;
}

static double worst(Errors e) { return larger(e.primal, of_multipliers(e)); }

/* Moves v inside its limits (section 3.6). */
static double inside(double v, double low, double up, double push) {
    double of_low = push * larger(1.0, fabs(low)), of_up = push * larger(1.0, fabs(up));
    if (low > -HUGE_NUMBER && up < HUGE_NUMBER)
        of_low = smaller(of_low, push * (up - low)), of_up = smaller(of_up, push * (up - low));
    if (low > -HUGE_NUMBER) v = larger(v, low + of_low);
    if (up < HUGE_NUMBER) v = smaller(v, up - of_up);
    return v;
}

/* Limits are relaxed, so that there is an interior between limits that meet at the optimum: at most by RELAXED,
   relative to their size (section 3.5), and by a share of the barrier parameter, which goes to zero. A variable keeps
   at least the share MIN_ROOM of its distance to a limit. */
static const double RELAXED = 1e-8, SHARE_OF_BARRIER = 0.1, MIN_ROOM = 0.1;

static void new_barrier(Interior *t, double mu) {
    const RunData *g = &t->g;
    double by = smaller(RELAXED, SHARE_OF_BARRIER * mu);
    t->mu = mu, t->phi = NAN, t->tau = larger(MIN_TAU, 1.0 - mu), t->filter.size = 0;
    for (int i = 0; i < g->n; i++) {
        double low = t->low[i] - by * larger(1.0, fabs(t->low[i])), up = t->up[i] + by * larger(1.0, fabs(t->up[i]));
        if (has_low(t, i)) g->low[i] = t->begun ? smaller(low, g->x[i] - MIN_ROOM * (g->x[i] - g->low[i])) : low;
        if (has_up(t, i)) g->up[i] = t->begun ? larger(up, g->x[i] + MIN_ROOM * (g->up[i] - g->x[i])) : up;
    }
}

/* Sets the initial iterate with its derivatives and scales; returns as `values_at`. */
static int begin(Interior *t) {
    const RunData *g = &t->g;
    new_barrier(t, t->mu);
    for (int i = 0; i < g->free; i++) g->x[i] = inside(g->x[i], g->low[i], g->up[i], g->push);
    memset(g->x + g->free, 0, (size_t)(g->n - g->free) * sizeof(double));
    int status = values_at(t, g->x, &t->f, t->c);
    if (status < 1) return status;
    for (int k = g->free; k < g->n; k++) {
        int row = g->slack_row[k - g->free];
        g->x[k] = inside(t->c[row], g->low[k], g->up[k], g->push);
        t->c[row] -= g->x[k];
    }
    status = slopes_at_iterate(t);
    if (status < 1) return status;
    find_scales(t);
    for (int i = 0; i < g->n; i++) {
        if (!has_low(t, i)) g->zl[i] = 0.0;
        else g->zl[i] = g->warm ? larger(t->cost_scale * g->zl[i], g->push) : 1.0;
        if (!has_up(t, i)) g->zu[i] = 0.0;
        else g->zu[i] = g->warm ? larger(t->cost_scale * g->zu[i], g->push) : 1.0;
    }
    for (int i = 0; g->warm && i < g->m; i++) g->y[i] *= t->cost_scale / t->row_scale[i];
    if (!g->warm && (status = find_multipliers(t)) < 1) return status;
    double theta = larger(1.0, sum_of(t->c, g->m));
    t->theta_max = 1e4 * theta, t->theta_min = 1e-4 * theta;
    find_dual(t);
    return 1;
}

/* Moves the multipliers along the step, those of limits only near the values of the barrier problem (equation 16). */
static void move_multipliers(Interior *t) {
    const RunData *g = &t->g;
    find_limit_steps(t, t->step);
    double alpha_dual = longest_of_limits(t), mu = t->mu;
    for (int i = 0; i < g->m; i++) g->y[i] += t->alpha * t->step[g->n + i];
    for (int i = 0; i < g->n; i++) {
        double target = mu / (g->x[i] - g->low[i]), moved = g->zl[i] + alpha_dual * t->dzl[i];
        g->zl[i] = larger(smaller(moved, KAPPA_SIGMA * target), target / KAPPA_SIGMA);
    }
    for (int i = 0; i < g->n; i++) {
        double target = mu / (g->up[i] - g->x[i]), moved = g->zu[i] + alpha_dual * t->dzu[i];
        g->zu[i] = larger(smaller(moved, KAPPA_SIGMA * target), target / KAPPA_SIGMA);
    }
}

static int record(Interior *t, Errors e) {
    if (!reals_room(&t->history, RECORDED)) return 0;
    double *at = t->history.at + t->history.size;
    at[0] = t->f / t->cost_scale, at[1] = e.primal, at[2] = e.dual / t->cost_scale, at[3] = t->mu / t->cost_scale;
    at[4] = t->step_size, at[5] = t->alpha;
    t->history.size += RECORDED;
    return 1;
}

/* Whether the barrier problem is solved well enough to reduce the barrier parameter (equation 7). */
static int is_barrier_solved(const Interior *t, Errors e) {
    return worst(e) <= (t->mu > LARGE_BARRIER ? t->g.kappa_early : KAPPA_EPSILON) * t->mu;
}

/* The next barrier parameter (equation 7). It falls linearly where the errors `e` would not yet suffice for IPOPT and
   the diagonal is shifted, as the step is not that of the barrier problem. */
static double next_barrier(const Interior *t, Errors e) {
    double linear = KAPPA_MU * t->mu;
    int is_early = t->shift > 0.0 && worst(e) > KAPPA_EPSILON * t->mu;
    return is_early ? linear : smaller(linear, pow(t->mu, THETA_MU));
}

/* Does one iteration, with a barrier parameter of at least `min_barrier`: 1, or 0 if the run is lost, or -1 to stop. */
static int iterate(Interior *t, Errors e, double min_barrier) {
    const RunData *g = &t->g;
    e.complementarity = complementarity_of(t, t->mu);
    for (int tiny = t->tiny; t->mu > min_barrier && (is_barrier_solved(t, e) || tiny); tiny = 0) {
        new_barrier(t, larger(min_barrier, next_barrier(t, e)));
        e.complementarity = complementarity_of(t, t->mu);
    }
    if (t->tiny > 1) return 0;
    int status = find_step(t);
    if (status < 1) return status;
    /* a step of second order helps if the matrix has the inertia of a minimum, and the complementarity is violated
       most, or the equations are nearly linear along the step */
    if (t->mu < g->second_below && t->shift == 0.0 &&
        (e.primal <= e.complementarity || largest_of(t->step, g->n) <= SHORT_STEP))
        find_second(t);
    status = search_line(t);
    if (status < 1) return status;
    t->step_size = largest_of(t->step, g->n);
    if (!(largest_of(g->x, g->n) < RUNS_AWAY)) return 0;
    move_multipliers(t);
    status = slopes_at_iterate(t);
    if (status < 1) return status;
    find_dual(t);
    t->iterations++;
    return 1;
}

/* Iterates until the optimality conditions hold to `tolerance` and the equations to `constraint_tolerance`, up to
   `max_iterations` in total. A run that stays within `acceptable` for PATIENCE iterations is NEAR. */
int interior_run(Interior *t, double tolerance, double constraint_tolerance, double acceptable, int max_iterations) {
    int status = 1, near = 0;
    if (!t->begun) status = begin(t);
    t->begun = 1;
    while (status == 1) {
        Errors e = errors_of(t, 0.0);
        if (t->history.size == RECORDED * (ptrdiff_t)t->iterations && !record(t, e)) return LOST;
        if (e.primal <= constraint_tolerance && of_multipliers(e) <= tolerance && holds_unscaled(t, e)) return SOLVED;
        near = worst(e) <= acceptable && acceptable_unscaled(t, e) ? near + 1 : 0;
        if (near >= PATIENCE) return NEAR;
        if (t->iterations >= max_iterations) return LIMIT;
        status = iterate(t, e, smaller(tolerance, UNSCALED_COMPLEMENTARITY * t->cost_scale) / (KAPPA_EPSILON + 1.0));
    }
    return status < 0 ? STOPPED : LOST;
}

/* Writes the iterate without scales: variables within the limits of the program, multipliers of these and of all rows,
   and the gradient of cost and equations; values of fixed variables and rows without limits remain. Evaluates cost and
   rows at the iterate. */
void interior_iterate(Interior *t, double *x, double *bounds, double *rows, double *gradient) {
    const RunData *g = &t->g;
    for (int i = 0; i < g->free; i++) {
        int k = g->column[i];
        x[k] = g->x[i] < t->low[i] ? t->low[i] : g->x[i] > t->up[i] ? t->up[i] : g->x[i];
        bounds[k] = g->zu[i] / t->cost_scale - g->zl[i] / t->cost_scale;
        gradient[k] = t->dual[i] / t->cost_scale;
    }
    for (int i = 0; i < g->m; i++) rows[g->equation[i]] = g->y[i] * t->row_scale[i] / t->cost_scale;
    memcpy(g->all, x, (size_t)g->columns * sizeof(double));
    evaluate(t, VALUES);
}
