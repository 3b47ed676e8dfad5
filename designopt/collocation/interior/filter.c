/* The line search with a filter (section 2.3) and corrections of second order (section 2.4). */

static const double GAMMA_THETA = 1e-5, GAMMA_PHI = 1e-8, ETA = 1e-8, S_THETA = 1.1, S_PHI = 2.3;
static const double MIN_ALPHA_SHARE = 0.05;
static const double SOC_HELPS = 0.99, MOST_INCREASE = 5.0, EPSILON = 2.220446049250313e-16;
enum { CORRECTIONS = 4 };

/* Whether a <= b up to the rounding errors of numbers as large as `size`. */
static int not_above(double a, double b, double size) { return a - b <= 10.0 * EPSILON * fabs(size); }

/* Violation and barrier function at the beginning of a step, and the slope of the barrier function along it. */
typedef struct {
    double theta, phi, slope;
} Merit;

static int in_filter(const Interior *t, double theta, double phi) {
    for (ptrdiff_t k = 0; k < t->filter.size; k += 2)
        if (!not_above(theta, t->filter.at[k], t->filter.at[k]) &&
            !not_above(phi, t->filter.at[k + 1], t->filter.at[k + 1]))
            return 1;
    return 0;
}

static int is_descent(const Interior *t, Merit m, double alpha) { /* equation 19 */
    return m.slope < 0.0 && m.theta <= t->theta_min && alpha * pow(-m.slope, S_PHI) > pow(m.theta, S_THETA);
}

static int decreases_enough(Merit m, double alpha, double phi) {
    return not_above(phi - m.phi, ETA * alpha * m.slope, m.phi);
}

static int is_accepted(const Interior *t, Merit m, double alpha, double theta, double phi) {
    if (!(theta <= t->theta_max) || !isfinite(phi)) return 0;
    if (phi > m.phi && log10(phi - m.phi) > MOST_INCREASE + larger(1.0, log10(fabs(m.phi)))) return 0;
    int is_better = is_descent(t, m, alpha) ? decreases_enough(m, alpha, phi)
                                           : not_above(theta, (1.0 - GAMMA_THETA) * m.theta, m.theta) ||
                                                 not_above(phi - m.phi, -GAMMA_PHI * m.theta, m.phi);
    return is_better && !in_filter(t, theta, phi);
}

/* The minimum step length of the line search (equation 23). */
static double shortest(const Interior *t, Merit m) {
    double share = GAMMA_THETA;
    if (m.slope < 0.0) {
        share = smaller(share, GAMMA_PHI * m.theta / -m.slope);
        if (m.theta <= t->theta_min) share = smaller(share, pow(m.theta, S_THETA) / pow(-m.slope, S_PHI));
    }
    return MIN_ALPHA_SHARE * share;
}

/* Maximum relative shift of a limit away from a variable that is on it because of rounding errors (section 3.5). */
static const double MAX_LIMIT_SHIFT = 1.8e-12;

static void keep_apart(Interior *t, int i, double min_distance) {
    const RunData *g = &t->g;
    if (has_low(t, i) && g->x[i] - g->low[i] < min_distance) {
        double distance = larger(t->mu / larger(g->zl[i], EPSILON), min_distance);
        g->low[i] = g->x[i] - smaller(distance, MAX_LIMIT_SHIFT * larger(1.0, fabs(g->low[i])));
    }
    if (has_up(t, i) && g->up[i] - g->x[i] < min_distance) {
        double distance = larger(t->mu / larger(g->zu[i], EPSILON), min_distance);
        g->up[i] = g->x[i] + smaller(distance, MAX_LIMIT_SHIFT * larger(1.0, fabs(g->up[i])));
    }
}

/* Moves x to `before` + alpha step and evaluates violation and barrier function; returns as `values_at`. */
static int trial(Interior *t, const double *step, double alpha, double *theta, double *phi) {
    const RunData *g = &t->g;
    double min_distance = EPSILON * smaller(1.0, t->mu);
    int is_near = 0;
    for (int i = 0; i < g->n; i++) g->x[i] = t->before[i] + alpha * step[i];
    for (int i = 0; i < g->n; i++)
        is_near |= (g->x[i] - g->low[i] < min_distance) | (g->up[i] - g->x[i] < min_distance);
    for (int i = 0; is_near && i < g->n; i++) keep_apart(t, i, min_distance);
    int status = values_at(t, g->x, &t->f, t->c);
    *theta = *phi = NAN;
    if (status == 1) *theta = sum_of(t->c, g->m), *phi = barrier_of(t, g->x, t->f);
    return status;
}

/* Corrects the full step for the violation at its end; 1 if a correction is accepted, which is then in t->soc. */
static int corrected(Interior *t, Merit m, double alpha, double theta_full, double *alpha_soc) {
    int n = t->g.n, rows = t->g.m;
    double last_theta = m.theta, theta = theta_full, phi, correction_alpha = alpha;
    memcpy(t->c_soc, t->c_before, (size_t)rows * sizeof(double));
    for (int round = 0; round < CORRECTIONS && (!round || theta <= SOC_HELPS * last_theta); round++) {
        last_theta = theta;
        for (int i = 0; i < rows; i++) {
            t->c_soc[i] = correction_alpha * t->c_soc[i] + t->c[i];
            t->rhs[n + i] = -t->c_soc[i];
        }
        if (!solve_for_rhs(t, 0, t->soc)) return 0;
        /* the correction starts at the beginning of the step */
        memcpy(t->g.x, t->before, (size_t)n * sizeof(double));
        correction_alpha = longest(t, t->soc);
        int status = trial(t, t->soc, correction_alpha, &theta, &phi);
        if (status < 1) return status;
        if (is_accepted(t, m, alpha, theta, phi)) {
            *alpha_soc = correction_alpha;
            return 1;
        }
    }
    return 0;
}

/* Tries the step of second order within the limits; 1 if the filter accepts it, which makes it the step. */
static int is_second_accepted(Interior *t, Merit *m, double *phi) {
    Merit second = {m->theta, m->phi, 0.0};
    double theta;
    for (int i = 0; i < t->g.n; i++) second.slope += (t->slopes[i] + t->barrier_slopes[i]) * t->second[i];
    t->alpha = longest(t, t->second);
    int status = trial(t, t->second, t->alpha, &theta, phi);
    t->has_second = status > 0 && is_accepted(t, second, t->alpha, theta, *phi);
    if (t->has_second) {
        memcpy(t->step, t->second, (size_t)(t->g.n + t->g.m) * sizeof(double));
        *m = second;
    } else memcpy(t->g.x, t->before, (size_t)t->g.n * sizeof(double));
    return status < 0 ? status : t->has_second;
}

/* Moves along the step to a point that the filter accepts: 1, or 0 without such a point, or -1 to stop. */
static int search_line(Interior *t) {
    int n = t->g.n;
    Merit m = {sum_of(t->c, t->g.m), isnan(t->phi) ? barrier_of(t, t->g.x, t->f) : t->phi, 0.0};
    for (int i = 0; i < n; i++) m.slope += (t->slopes[i] + t->barrier_slopes[i]) * t->step[i];
    double alpha = longest(t, t->step), theta, phi;
    int is_tiny = m.theta <= 1e-4;
    for (int i = 0; is_tiny && i < n; i++) is_tiny = !(fabs(t->step[i]) / (1.0 + fabs(t->g.x[i])) > 10.0 * EPSILON);
    memcpy(t->c_before, t->c, (size_t)t->g.m * sizeof(double));
    double f_before = t->f, min_alpha = shortest(t, m);
    t->tiny = is_tiny ? t->tiny + 1 : 0;
    int second = t->has_second ? is_second_accepted(t, &m, &phi) : 0;
    if (second < 0) return -1;
    if (second) alpha = t->alpha;
    for (int first = 1; !second && (alpha > min_alpha || first); first = 0, alpha *= 0.5) {
        int status = trial(t, t->step, alpha, &theta, &phi);
        if (status < 0) return -1;
        if (status && (is_tiny || is_accepted(t, m, alpha, theta, phi))) {
            t->alpha = alpha;
            break;
        }
        if (status && first && theta >= m.theta) {
            status = corrected(t, m, alpha, theta, &t->alpha);
            if (status < 0) return -1;
            if (status) {
                memcpy(t->step, t->soc, (size_t)(n + t->g.m) * sizeof(double));
                phi = barrier_of(t, t->g.x, t->f);
                break;
            }
        }
        if (alpha * 0.5 <= min_alpha) {
            memcpy(t->g.x, t->before, (size_t)n * sizeof(double));
            memcpy(t->c, t->c_before, (size_t)t->g.m * sizeof(double));
            t->f = f_before;
            return 0;
        }
    }
    t->phi = phi;
    if (!is_descent(t, m, alpha) || !decreases_enough(m, alpha, phi)) { /* equation 22 */
        if (!reals_room(&t->filter, 2)) return 0;
        t->filter.at[t->filter.size++] = (1.0 - GAMMA_THETA) * m.theta;
        t->filter.at[t->filter.size++] = m.phi - GAMMA_PHI * m.theta;
    }
    return 1;
}
