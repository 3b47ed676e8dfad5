/* Newton's step: the matrix with the inertia of a descent direction, its factors, and refined solutions. */

static const double MIN_SHIFT = 1e-20, MAX_SHIFT = 1e20; /* section 3.1 */
static const double EXACT = 1e-10, GOOD_ENOUGH = 1e-5;
/* Residual to which solutions by nodes are refined; where that is not reached, it is EXACT, or fronts take over. */
static const double EXACT_BY_NODES = 1e-14;
/* Number of successive iterations with a singular matrix after which the equations are shifted first (IPOPT's). */
enum { REFINEMENTS = 10, DEGENERATE = 3 };
/* Step of a multiplier, relative to the multipliers, above which the matrix is singular up to rounding errors. */
static const double MAX_GROWTH = 1e12;

/* Multiplies the matrix (n + m, n + m), of which the lower triangle is stored, by a vector. */
static void times(const Interior *t, const double *v, double *result) {
    const int *begin = t->g.begin, *row = t->g.row;
    int size = t->g.n + t->g.m;
    memset(result, 0, (size_t)size * sizeof(double));
    for (int j = 0; j < size; j++) {
        double sum = 0.0, vj = v[j];
        int k = begin[j];
        if (k < begin[j + 1] && row[k] == j) sum = t->k[k++] * vj;
        for (; k < begin[j + 1]; k++) {
            sum += t->k[k] * v[row[k]];
            result[row[k]] += t->k[k] * vj;
        }
        result[j] += sum;
    }
}

/* Factorizes the matrix and substitutes `rhs` forward: 1 if the inertia is correct, 0 if it is not, -1 if the matrix is
   singular, -2 without memory. */
static int factorize_matrix(Interior *t) {
    if (!is_analysed(&t->system, t->k)) return -2;
    if (!t->factor && !(t->factor = new_factor(t->system.analysis))) return -2;
    int flag = factorize(t->system.analysis, t->k, t->threshold, 1e-100, t->rhs, t->factor);
    if (flag == NO_MEMORY) return -2;
    return flag == SINGULAR ? -1 : t->factor->negative == t->g.m;
}

/* Adds a shift to the diagonal of the variables, and subtracts one from that of the equations. */
static void shift_diagonal(Interior *t, double variable_shift, double equation_shift) {
    for (int i = 0; i < t->g.n; i++) t->k[t->g.diagonal[i]] += variable_shift;
    for (int i = t->g.n; i < t->g.n + t->g.m; i++) t->k[t->g.diagonal[i]] -= equation_shift;
}

/* The shift of the equations that makes a singular matrix regular. */
static double singular_shift(const Interior *t) { return 1e-8 * pow(t->mu, 0.25); }

/* Factorizes the matrix, shifted until its inertia is correct (algorithm IC); 0 without success. A `first` matrix has
   no shift yet. Dependent equations make the matrix singular in every iteration: then the equations are shifted first.
   */
static int factorize_descent(Interior *t, int first) {
    double shift = 0.0, equation_shift = 0.0;
    if (first && t->singular >= DEGENERATE) {
        equation_shift = singular_shift(t);
        shift_diagonal(t, 0.0, equation_shift);
    }
    for (int tries = 0;; tries++) {
        int status = factorize_matrix(t);
        if (status == 1) {
            t->shift = shift;
            if (shift > 0.0) t->last_shift = shift;
            if (first && equation_shift == 0.0) t->singular = 0;
            return 1;
        }
        if (status == -2) return 0;
        double added_shift = 0.0, next_shift;
        if (status == -1 && equation_shift == 0.0) {
            added_shift = singular_shift(t), next_shift = shift, t->singular += first;
        } else if (shift == 0.0) {
            next_shift = t->last_shift == 0.0 ? t->g.first_shift : larger(MIN_SHIFT, t->last_shift / 3.0);
        } else {
            next_shift = shift * (t->last_shift == 0.0 ? 100.0 : 8.0);
        }
        if (next_shift > MAX_SHIFT || tries > 60) return 0;
        shift_diagonal(t, next_shift - shift, added_shift);
        shift = next_shift, equation_shift += added_shift;
    }
}

/* Writes the refined solution for `rhs`, which the factorization has substituted forward if `has_substituted`; 0 if no
   digit is correct. */
static int solve_for_rhs(Interior *t, int has_substituted, double *solution) {
    int size = t->g.n + t->g.m;
    int is_by_nodes = t->factor->is_by_nodes;
    double rhs_size = largest_of(t->rhs, size), last_ratio = HUGE_NUMBER;
    double aim = is_by_nodes ? EXACT_BY_NODES : EXACT, limit = is_by_nodes ? EXACT : GOOD_ENOUGH;
    memcpy(solution, t->rhs, (size_t)size * sizeof(double));
    solve(t->system.analysis, t->factor, has_substituted, solution);
    for (int round = 0; round <= REFINEMENTS; round++) {
        times(t, solution, t->residual);
        for (int i = 0; i < size; i++) t->residual[i] = t->rhs[i] - t->residual[i];
        double solution_size = largest_of(solution, size), residual_size = largest_of(t->residual, size);
        double ratio = residual_size / (smaller(solution_size, 1e6 * rhs_size) + rhs_size);
        if (!isfinite(solution_size)) return 0;
        if (residual_size == 0.0 || ratio <= aim) return 1;
        if (round == REFINEMENTS || ratio > 0.9 * last_ratio) return ratio <= limit;
        last_ratio = ratio;
        solve(t->system.analysis, t->factor, 0, t->residual);
        for (int i = 0; i < size; i++) solution[i] += t->residual[i];
    }
    return 1;
}

static double squares_of(const double *v, int n) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) sum += v[i] * v[i];
    return sum;
}

/* Largest multiplier by least squares. */
static const double MAX_MULTIPLIER = 1000.0;
/* Share of the gradient that multipliers may leave if they balance it. */
static const double UNBALANCED = 0.1;

/* Sets the multipliers of the equations by least squares (section 3.6), or to 0 if those are large, or if equations are
   violated by more than `far_off` and the gradient is not balanced: then those of a minimum are others. */
static int find_multipliers(Interior *t) {
    const RunData *g = &t->g;
    if (!g->m) return 1;
    if (find_matrix(t, 0) < 0) return -1;
    for (int i = 0; i < g->n; i++) {
        t->k[g->diagonal[i]] += 1.0;
        t->rhs[i] = -(t->slopes[i] - g->zl[i] + g->zu[i]);
    }
    memset(t->rhs + g->n, 0, (size_t)g->m * sizeof(double));
    int is_usable =
        factorize_matrix(t) == 1 && solve_for_rhs(t, 1, t->step) && largest_of(t->step + g->n, g->m) <= MAX_MULTIPLIER;
    if (largest_of(t->c, g->m) > g->far_off) /* the step of the variables is the gradient that remains */
        is_usable &= squares_of(t->step, g->n) <= UNBALANCED * UNBALANCED * squares_of(t->rhs, g->n);
    for (int i = 0; i < g->m; i++) g->y[i] = is_usable ? t->step[g->n + i] : 0.0;
    return 1;
}

/* Sets the entries of the matrix of Newton's equations, without shifts; returns as `values_at`. */
static int find_newton_matrix(Interior *t) {
    const RunData *g = &t->g;
    int status = find_matrix(t, 1);
    if (status < 1) return status;
    double *of_low = t->product_low, *of_up = t->product_up; /* memory that is free until `find_second` */
    for (int i = 0; i < g->n; i++) of_low[i] = g->zl[i] / (g->x[i] - g->low[i]);
    for (int i = 0; i < g->n; i++) of_up[i] = g->zu[i] / (g->up[i] - g->x[i]);
    for (int i = 0; i < g->n; i++) t->k[g->diagonal[i]] = t->k[g->diagonal[i]] + of_low[i] + of_up[i];
    return 1;
}

/* Writes the step for the factorized matrix, by fronts if it is not exact by nodes, and with larger pivots if no digit is
   correct; 0 without a step. */
static int solve_for_step(Interior *t) {
    while (!solve_for_rhs(t, 1, t->step)) {
        if (t->factor->is_by_nodes) t->factor->is_by_nodes = 0;
        else if (t->threshold >= 1e-2) return 0;
        else t->threshold = smaller(1e-2, 100.0 * t->threshold);
        if (factorize_matrix(t) != 1 && !factorize_descent(t, 0)) return 0;
    }
    return 1;
}

/* Computes Newton's step of variables and equations (equation 13); returns as `values_at`, 0 also without a step.
   Rounding errors hide a singular matrix, as of a motion from rest with a free time: then multipliers grow without
   limit, or no digit of the step is correct, and the equations are shifted. */
static int find_step(Interior *t) {
    const RunData *g = &t->g;
    int status = find_newton_matrix(t);
    if (status < 1) return status;
    if (t->iterations == 1) t->factor->is_by_nodes = 1; /* the first matrix is often singular: it needs larger pivots */
    memcpy(t->before, g->x, (size_t)g->n * sizeof(double));
    t->has_second = 0;
    find_barrier_slopes(t);
    for (int i = 0; i < g->n; i++) t->rhs[i] = -(t->dual[i] + t->barrier_slopes[i]);
    for (int i = 0; i < g->m; i++) t->rhs[g->n + i] = -t->c[i];
    if (!factorize_descent(t, 1)) return 0;
    double threshold = t->threshold;
    int is_solved = solve_for_step(t);
    if (is_solved && largest_of(t->step + g->n, g->m) <= MAX_GROWTH * larger(1.0, largest_of(g->y, g->m))) return 1;
    if ((status = find_newton_matrix(t)) < 1) return status;
    shift_diagonal(t, 0.0, singular_shift(t));
    if (!is_solved) t->threshold = threshold; /* larger pivots did not help */
    return factorize_descent(t, 0) && solve_for_step(t);
}

/* Computes the steps of the multipliers of limits for the `step` of the variables from `before` (equation 12). Loops of
   few arrays, without conditions, are those that the compiler does for several numbers at a time. */
static void find_limit_steps(Interior *t, const double *step) {
    const RunData *g = &t->g;
    double mu = t->mu;
    for (int i = 0; i < g->n; i++) {
        double low = t->before[i] - g->low[i];
        t->dzl[i] = mu / low - g->zl[i] - g->zl[i] / low * step[i];
    }
    for (int i = 0; i < g->n; i++) {
        double up = g->up[i] - t->before[i];
        t->dzu[i] = mu / up - g->zu[i] + g->zu[i] / up * step[i];
    }
    for (int i = 0; t->has_second && i < g->n; i++) t->dzl[i] -= t->product_low[i], t->dzu[i] -= t->product_up[i];
}

/* The largest share, at most 1, of a step that stays within the limits (equation 15). */
static double longest(const Interior *t, const double *step) {
    const double *x = t->g.x, *low = t->g.low, *up = t->g.up, tau = t->tau;
    int64_t smallest = bits_of_size(1.0);
    for (int i = 0; i < t->g.n; i++) {
        double to_limit = step[i] < 0.0 ? -tau * (x[i] - low[i]) : tau * (up[i] - x[i]);
        int64_t bits = bits_of_size(to_limit / step[i]); /* NaN is the largest, as infinity of a step of zero */
        smallest = bits < smallest ? bits : smallest;
    }
    return of_bits(smallest);
}

static double longest_of_limits(const Interior *t) {
    const double *zl = t->g.zl, *zu = t->g.zu, *dzl = t->dzl, *dzu = t->dzu, tau = t->tau;
    int64_t smallest = bits_of_size(1.0), of_low, of_up;
    for (int i = 0; i < t->g.n; i++) {
        double low = -tau * zl[i] / dzl[i], up = -tau * zu[i] / dzu[i];
        of_low = bits_of_size(dzl[i] < 0.0 ? low : 1.0), of_up = bits_of_size(dzu[i] < 0.0 ? up : 1.0);
        smallest = of_low < smallest ? of_low : smallest, smallest = of_up < smallest ? of_up : smallest;
    }
    return of_bits(smallest);
}

/* Minimum length of a step of second order, as a share of the length of Newton's step. */
static const double MIN_SECOND_SHARE = 0.5;

/* Computes the step with the products of the steps of distances to limits and of their multipliers, which equations 12
   and 13 neglect (Mehrotra, SIAM J. Optim. 2 (1992) 575), and accepts it if it is not much shorter. */
static void find_second(Interior *t) {
    const RunData *g = &t->g;
    find_limit_steps(t, t->step);
    double alpha = longest(t, t->step), alpha_dual = longest_of_limits(t);
    for (int i = 0; i < g->n; i++) t->product_low[i] = t->step[i] * t->dzl[i] / (g->x[i] - g->low[i]);
    for (int i = 0; i < g->n; i++) t->product_up[i] = -t->step[i] * t->dzu[i] / (g->up[i] - g->x[i]);
    for (int i = 0; i < g->n; i++) t->rhs[i] += t->product_up[i] - t->product_low[i];
    if (!solve_for_rhs(t, 0, t->second)) return;
    t->has_second = 1;
    find_limit_steps(t, t->second);
    t->has_second =
        longest(t, t->second) >= MIN_SECOND_SHARE * alpha && longest_of_limits(t) >= MIN_SECOND_SHARE * alpha_dual;
}
