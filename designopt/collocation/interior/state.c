/* Minimise f(v) with c(v) = 0 and low <= v <= up by a primal-dual interior point method with a filter.

   Wächter, Biegler, On the implementation of an interior-point filter line-search algorithm for large-scale nonlinear
   programming, Mathematical Programming 106 (2006) 25. Equations and sections are numbered as in this paper; constants
   are IPOPT's defaults, except `kappa_early` and `first_shift`. Steps of second order and `far_off` (step.c) are
   additions. v contains the variables that are not fixed, then a slack for each row with two different limits. There is
   no restoration phase: where IPOPT would begin one, the run ends with LOST. */

typedef int (*Evaluate)(int what);

/* Requests to the functions, which read `all`: cost and rows; gradient and Jacobian; the Hessian with `cost_factor` and
   `row_factors`; nothing. A result other than 0 ends the run. */
enum { VALUES, SLOPES, CURVATURE, NOTHING };

/* A compiled function of CasADi with its arguments, results and memory. */
typedef struct {
    int (*function)(const double **, double **, int *, double *, int);
    const double **arguments;
    double **results;
    int *integers;
    double *reals;
} Call;

/* Number of quantities in the history for each iterate. */
enum { RECORDED = 6 };

/* Ends of a run. */
enum { SOLVED, NEAR, LIMIT, STOPPED, LOST };

/* The input of a run, from Python: the structure of the program, its limits, and the memory of its functions. */
typedef struct {
    int n, free, m, columns, rows, nz, w_count, w_all, j_count, j_all;
    const int *begin, *row;      /* lower triangle of the matrix of Newton's equations, n + m columns */
    const int *diagonal;         /* (n + m,) positions of its diagonal */
    const int *column;           /* (free,) column of the program of each variable */
    const int *equation;         /* (m,) row of the program of each equation */
    const int *slack_row, *slack_to;   /* (n - free,) equation of each slack, position of its -1 */
    const int *w_from, *w_to;    /* (w_count,) entries of the Hessian, their positions */
    const int *j_from, *j_to, *j_row, *j_col; /* (j_count,) entries of the Jacobian; positions, rows, columns */
    double *all, *cost, *g, *gradient, *jacobian, *hessian, *cost_factor, *row_factors;
    double *numbers;             /* the next seven arrays, one after the other, to which `interior_new` points */
    const double *value;         /* (m,) values of equalities, 0 of other rows */
    double *low, *up;            /* (n,) */
    double *x, *y, *zl, *zu;     /* the iterate: (n,), (m,), multipliers (n,) of the limits */
    Evaluate evaluate;
    const Call *calls;           /* cost, rows, gradient, Jacobian, Hessian; NULL if interpreted */
    double barrier, push;        /* initial */
    double kappa_early;          /* replaces kappa_epsilon (equation 7) while the barrier is large */
    double second_below;         /* barrier below which the run tries steps of second order */
    double first_shift;          /* replaces delta_0 (algorithm IC) */
    double far_off;              /* violation above which the first multipliers must balance the gradient */
    int warm;                    /* whether the run starts with multipliers */
} RunData;

typedef struct {
    RunData g;
    System system;
    Factor *factor;
    double *work, *k;                         /* memory of all arrays; entries of the matrix */
    double *c, *slopes, *dual;                /* rows, gradient, gradient of the Lagrangian without zl and zu */
    double *step, *rhs, *residual;            /* (n + m,) Newton's step, right-hand side, residual */
    double *dzl, *dzu;                        /* (n,) steps of zl and zu */
    double *low, *up;                         /* (n,) limits of the program, not relaxed */
    double *before, *c_before, *c_soc, *soc, *row_scale;
    double *second, *product_low, *product_up; /* (n + m,) step of second order; (n,) its terms in equation 13 */
    double *barrier_slopes; /* (n,) gradient of the barrier terms at the beginning of a step */
    double phi;             /* barrier function at the iterate; NaN until it is computed with this barrier parameter */
    double f, cost_scale, mu, tau, theta_max, theta_min, shift, last_shift, threshold, step_size, alpha, last_request;
    Reals filter, history;
    int iterations, begun, limits;
    int has_second;     /* whether `second` is tried, then whether it is the step */
    int tiny, singular; /* numbers of successive tiny steps, and of successive singular matrices */
} Interior;

static const double HUGE_NUMBER = 1e19;

/* As fmax and fmin, which the compiler does not inline: of NaN and a number they return the number. */
static double larger(double a, double b) { return a > b || b != b ? a : b; }
static double smaller(double a, double b) { return a < b || b != b ? a : b; }

static int has_low(const Interior *t, int i) { return t->g.low[i] > -HUGE_NUMBER; }
static int has_up(const Interior *t, int i) { return t->g.up[i] < HUGE_NUMBER; }

/* The bits of an absolute value. They have its order as integers, which the compiler compares several at a time; NaN is
   the largest. */
static int64_t bits_of_size(double v) {
    int64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    return bits & INT64_MAX;
}

static double of_bits(int64_t bits) {
    double v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

/* The largest absolute value; NaN if there is a NaN. */
static double largest_of(const double *v, int n) {
    int64_t largest = 0;
    for (int i = 0; i < n; i++) {
        int64_t bits = bits_of_size(v[i]);
        largest = bits > largest ? bits : largest;
    }
    return of_bits(largest);
}

static double sum_of(const double *v, int n) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) sum += fabs(v[i]);
    return sum;
}

void interior_free(Interior *t) {
    if (!t) return;
    free_factor(t->factor), release(t->system.analysis);
    free(t->work), free(t->filter.at), free(t->history.at), free(t);
}

Interior *interior_new(const RunData *data) {
    Interior *t = calloc(1, sizeof(Interior));
    if (!t) return NULL;
    int n = data->n, m = data->m;
    t->g = *data;
    t->work = calloc((size_t)(15 * (ptrdiff_t)n + 9 * (ptrdiff_t)m + data->nz + 1), sizeof(double));
    if (!t->work) {
        interior_free(t);
        return NULL;
    }
    double *at = data->numbers;
    t->g.value = at, at += m, t->g.low = at, at += n, t->g.up = at, at += n, t->g.x = at, at += n;
    t->g.y = at, at += m, t->g.zl = at, at += n, t->g.zu = at;
    at = t->work;
    t->slopes = at, at += n, t->dual = at, at += n, t->dzl = at, at += n, t->dzu = at, at += n;
    t->low = at, at += n, t->up = at, at += n, t->before = at, at += n;
    t->product_low = at, at += n, t->product_up = at, at += n, t->second = at, at += n + m;
    t->barrier_slopes = at, at += n;
    t->c = at, at += m, t->c_before = at, at += m, t->c_soc = at, at += m, t->row_scale = at, at += m;
    t->step = at, at += n + m, t->rhs = at, at += n + m, t->residual = at, at += n + m;
    t->soc = at, at += n + m, t->k = at;
    for (int i = 0; i < n; i++) { /* so that terms of limits that do not exist are zero */
        if (has_low(t, i)) t->limits++;
        else t->g.low[i] = -INFINITY;
        if (has_up(t, i)) t->limits++;
        else t->g.up[i] = INFINITY;
    }
    memcpy(t->low, t->g.low, (size_t)n * sizeof(double)), memcpy(t->up, t->g.up, (size_t)n * sizeof(double));
    t->system = (System){n + m, data->nz, (int *)data->begin, (int *)data->row, NULL};
    t->cost_scale = 1.0, t->threshold = FIRST_THRESHOLD, t->mu = data->barrier, t->phi = NAN;
    for (int i = 0; i < m; i++) t->row_scale[i] = 1.0;
    return t;
}

/* The number of records in the history, one for each iterate. */
int interior_records(const Interior *t) { return (int)(t->history.size / RECORDED); }

/* Writes the history (RECORDED, records): each quantity of all iterates, one after the other. */
void interior_history(const Interior *t, double *history) {
    ptrdiff_t records = t->history.size / RECORDED;
    for (ptrdiff_t k = 0; k < t->history.size; k++) history[k % RECORDED * records + k / RECORDED] = t->history.at[k];
}

int interior_iterations(const Interior *t) { return t->iterations; }

double interior_cost(const Interior *t) { return t->f / t->cost_scale; }
