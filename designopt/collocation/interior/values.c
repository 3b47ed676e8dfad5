/* Values and derivatives at the iterate, scaled so that no gradient is larger than 100 at the start. */

static const double MAX_GRADIENT = 100.0, MIN_SCALE = 1e-8;

/* Minimum time (s) between two calls of Python, which receives requests to stop, if the functions are compiled: in
   small programs such a call takes as long as the functions. */
static const double REQUEST_INTERVAL = 1e-3;

static int is_stopped(Interior *t) {
    struct timespec now = {0};
    timespec_get(&now, TIME_UTC);
    double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    if (fabs(seconds - t->last_request) < REQUEST_INTERVAL) return 0;
    t->last_request = seconds;
    return t->g.evaluate(NOTHING);
}

static int evaluate(Interior *t, int what) {
    static const int first[] = {0, 2, 4, 5};
    const RunData *g = &t->g;
    if (!g->calls) return g->evaluate(what);
    for (int k = first[what]; k < first[what + 1]; k++) {
        const Call *call = g->calls + k;
        call->function(call->arguments, call->results, call->integers, call->reals, 0);
    }
    return what == SLOPES ? is_stopped(t) : 0;
}

/* Computes cost and equations at v: 1, or 0 if they are not finite, or -1 to stop. */
static int values_at(Interior *t, const double *v, double *f, double *c) {
    const RunData *g = &t->g;
    for (int i = 0; i < g->free; i++) g->all[g->column[i]] = v[i];
    if (evaluate(t, VALUES)) return -1;
    *f = t->cost_scale * *g->cost;
    for (int i = 0; i < g->m; i++) c[i] = g->g[g->equation[i]] - g->value[i];
    for (int k = g->free; k < g->n; k++) c[g->slack_row[k - g->free]] -= v[k];
    for (int i = 0; i < g->m; i++) c[i] *= t->row_scale[i];
    return isfinite(*f) && isfinite(largest_of(c, g->m));
}

/* Computes gradient and Jacobian at the point of the last `values_at`, and returns as that. Derivatives by fixed
   variables must be finite too. */
static int slopes_at_iterate(Interior *t) {
    const RunData *g = &t->g;
    if (evaluate(t, SLOPES)) return -1;
    for (int i = 0; i < g->free; i++) t->slopes[i] = t->cost_scale * g->gradient[g->column[i]];
    return isfinite(largest_of(g->gradient, g->columns)) && isfinite(largest_of(g->jacobian, g->j_all));
}

static double jacobian_at(const Interior *t, int k) {
    return t->row_scale[t->g.j_row[k]] * t->g.jacobian[t->g.j_from[k]];
}

/* Sets the scales of cost and rows from the first gradients. */
static void find_scales(Interior *t) {
    const RunData *g = &t->g;
    double largest = largest_of(t->slopes, g->free);
    if (largest > MAX_GRADIENT) t->cost_scale = larger(MAX_GRADIENT / largest, MIN_SCALE);
    memset(t->residual, 0, (size_t)g->m * sizeof(double));
    for (int k = 0; k < g->j_count; k++) {
        double size = fabs(g->jacobian[g->j_from[k]]);
        if (size > t->residual[g->j_row[k]]) t->residual[g->j_row[k]] = size;
    }
    for (int i = 0; i < g->m; i++)
        if (t->residual[i] > MAX_GRADIENT) t->row_scale[i] = larger(MAX_GRADIENT / t->residual[i], MIN_SCALE);
    t->f *= t->cost_scale;
    for (int i = 0; i < g->free; i++) t->slopes[i] *= t->cost_scale;
    for (int i = 0; i < g->m; i++) t->c[i] *= t->row_scale[i];
}

/* Computes the gradient of the Lagrangian without the multipliers of limits. */
static void find_dual(Interior *t) {
    const RunData *g = &t->g;
    memcpy(t->dual, t->slopes, (size_t)g->n * sizeof(double));
    for (int k = 0; k < g->j_count; k++) t->dual[g->j_col[k]] += jacobian_at(t, k) * g->y[g->j_row[k]];
    for (int k = g->free; k < g->n; k++)
        t->dual[k] -= t->row_scale[g->slack_row[k - g->free]] * g->y[g->slack_row[k - g->free]];
}

/* Sets the entries of the matrix from the Jacobian and, if `curved`, the Hessian; returns as `values_at`. */
static int find_matrix(Interior *t, int curved) {
    const RunData *g = &t->g;
    memset(t->k, 0, (size_t)g->nz * sizeof(double));
    if (curved) {
        *g->cost_factor = t->cost_scale;
        for (int i = 0; i < g->m; i++) g->row_factors[g->equation[i]] = t->row_scale[i] * g->y[i];
        if (evaluate(t, CURVATURE)) return -1;
        if (!isfinite(largest_of(g->hessian, g->w_all))) return 0;
        for (int k = 0; k < g->w_count; k++) t->k[g->w_to[k]] = g->hessian[g->w_from[k]];
    }
    for (int k = 0; k < g->j_count; k++) t->k[g->j_to[k]] = jacobian_at(t, k);
    for (int k = 0; k < g->n - g->free; k++) t->k[g->slack_to[k]] = -t->row_scale[g->slack_row[k]];
    return 1;
}

/* The barrier function, with the damping of variables with one limit (section 3.7). */
static const double DAMPING = 1e-5;

static double barrier_of(const Interior *t, const double *v, double f) {
    double logs = 0.0, damped = 0.0;
    for (int i = 0; i < t->g.n; i++) {
        int low = has_low(t, i), up = has_up(t, i);
        if (low) logs += log(v[i] - t->g.low[i]);
        if (up) logs += log(t->g.up[i] - v[i]);
        if (low != up) damped += low ? v[i] - t->g.low[i] : t->g.up[i] - v[i];
    }
    return f - t->mu * logs + DAMPING * t->mu * damped;
}

/* Computes the gradient of the barrier terms at the iterate. */
static void find_barrier_slopes(Interior *t) {
    const double *x = t->g.x, *low = t->g.low, *up = t->g.up;
    double mu = t->mu, damping = DAMPING * mu;
    for (int i = 0; i < t->g.n; i++) {
        double of_one_limit = has_low(t, i) ? damping : -damping;
        double slope = 0.0 - mu / (x[i] - low[i]) + mu / (up[i] - x[i]);
        t->barrier_slopes[i] = has_low(t, i) != has_up(t, i) ? slope + of_one_limit : slope;
    }
}
