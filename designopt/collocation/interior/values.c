/* Values and derivatives at the iterate, scaled so that no gradient is larger than 100 where the search begins. */

static const double MAX_GRADIENT = 100.0, MIN_SCALE = 1e-8;

/* Compiled functions are called from here. Python, which learns of requests to stop, is called after an iteration that
   begins this time (s) after the last call: for small programs a call takes as long as their functions. */
static const double ASKED_AGAIN = 1e-3;

static int is_stopped(Interior *t) {
    struct timespec now = {0};
    timespec_get(&now, TIME_UTC);
    double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    if (fabs(seconds - t->asked) < ASKED_AGAIN) return 0;
    t->asked = seconds;
    return t->g.evaluate(NOTHING);
}

static int evaluated(Interior *t, int what) {
    static const int first[] = {0, 2, 4, 5};
    const SearchData *g = &t->g;
    if (!g->calls) return g->evaluate(what);
    for (int k = first[what]; k < first[what + 1]; k++) {
        const Call *call = g->calls + k;
        call->function(call->arguments, call->results, call->integers, call->reals, 0);
    }
    return what == SLOPES ? is_stopped(t) : 0;
}

/* Cost and equations at v; 0 where they are not finite, -1 where the search is to stop. */
static int values_at(Interior *t, const double *v, double *f, double *c) {
    const SearchData *g = &t->g;
    for (int i = 0; i < g->free; i++) g->all[g->column[i]] = v[i];
    if (evaluated(t, VALUES)) return -1;
    *f = t->cost_scale * *g->cost;
    for (int i = 0; i < g->m; i++) c[i] = g->g[g->equation[i]] - g->value[i];
    for (int k = g->free; k < g->n; k++) c[g->slack_row[k - g->free]] -= v[k];
    for (int i = 0; i < g->m; i++) c[i] *= t->row_scale[i];
    return isfinite(*f) && isfinite(largest_of(c, g->m));
}

/* Gradient and Jacobian at the point that was last asked for; those of fixed variables have to be finite too. */
static int slopes_there(Interior *t) {
    const SearchData *g = &t->g;
    if (evaluated(t, SLOPES)) return -1;
    for (int i = 0; i < g->free; i++) t->slopes[i] = t->cost_scale * g->gradient[g->column[i]];
    return isfinite(largest_of(g->gradient, g->columns)) && isfinite(largest_of(g->jacobian, g->j_all));
}

static double jacobian_at(const Interior *t, int k) {
    return t->row_scale[t->g.j_row[k]] * t->g.jacobian[t->g.j_from[k]];
}

/* The scales that the first gradients ask for. */
static void find_scales(Interior *t) {
    const SearchData *g = &t->g;
    double largest = largest_of(t->slopes, g->free);
    if (largest > MAX_GRADIENT) t->cost_scale = larger(MAX_GRADIENT / largest, MIN_SCALE);
    memset(t->left, 0, (size_t)g->m * sizeof(double));
    for (int k = 0; k < g->j_count; k++) {
        double size = fabs(g->jacobian[g->j_from[k]]);
        if (size > t->left[g->j_row[k]]) t->left[g->j_row[k]] = size;
    }
    for (int i = 0; i < g->m; i++)
        if (t->left[i] > MAX_GRADIENT) t->row_scale[i] = larger(MAX_GRADIENT / t->left[i], MIN_SCALE);
    t->f *= t->cost_scale;
    for (int i = 0; i < g->free; i++) t->slopes[i] *= t->cost_scale;
    for (int i = 0; i < g->m; i++) t->c[i] *= t->row_scale[i];
}

/* The gradient of the Lagrangian without the multipliers of limits. */
static void find_dual(Interior *t) {
    const SearchData *g = &t->g;
    memcpy(t->dual, t->slopes, (size_t)g->n * sizeof(double));
    for (int k = 0; k < g->j_count; k++) t->dual[g->j_col[k]] += jacobian_at(t, k) * g->y[g->j_row[k]];
    for (int k = g->free; k < g->n; k++)
        t->dual[k] -= t->row_scale[g->slack_row[k - g->free]] * g->y[g->slack_row[k - g->free]];
}

/* The part of the matrix that the functions give: Hessian (where `curved`) and Jacobian. */
static int find_matrix(Interior *t, int curved) {
    const SearchData *g = &t->g;
    memset(t->k, 0, (size_t)g->nz * sizeof(double));
    if (curved) {
        *g->cost_factor = t->cost_scale;
        for (int i = 0; i < g->m; i++) g->row_factors[g->equation[i]] = t->row_scale[i] * g->y[i];
        if (evaluated(t, CURVATURE)) return -1;
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

/* The gradient of the barrier terms in variable i. */
static double barrier_slope(const Interior *t, int i) {
    int low = has_low(t, i), up = has_up(t, i);
    double found = 0.0;
    if (low) found -= t->mu / (t->g.x[i] - t->g.low[i]);
    if (up) found += t->mu / (t->g.up[i] - t->g.x[i]);
    if (low != up) found += (low ? DAMPING : -DAMPING) * t->mu;
    return found;
}
