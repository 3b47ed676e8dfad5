/* Minimise f(v) with c(v) = 0 and low <= v <= up by a primal-dual interior point method with a filter.

   Wächter, Biegler, On the implementation of an interior-point filter line-search algorithm for large-scale nonlinear
   programming, Mathematical Programming 106 (2006) 25: numbers of equations and sections are of this paper, constants
   those of IPOPT's defaults but for `kappa_early`. Steps of second order (step.c) are additional. v are the variables that are not fixed and a slack for each row with two different
   limits. There is no restoration phase: where one would begin, the search ends with LOST. */

typedef int (*Evaluate)(int what);

/* What is asked of the functions, at `all`: cost and rows; gradient and Jacobian; the Hessian with `cost_factor` and
   `row_factors`; nothing. The answer is 0, or the search ends. */
enum { VALUES, SLOPES, CURVATURE, NOTHING };

/* A compiled function of CasADi with its arguments, results and memory. */
typedef struct {
    int (*function)(const double **, double **, int *, double *, int);
    const double **arguments;
    double **results;
    int *integers;
    double *reals;
} Call;

/* How a search ends. */
enum { SOLVED, NEAR, LIMIT, STOPPED, LOST };

/* What Python gives: the structure of the program, its limits and memory that is shared with its functions. */
typedef struct {
    int n, free, m, columns, rows, nz, w_count, w_all, j_count, j_all;
    const int *begin, *row;      /* lower triangle of the matrix of Newton's equations, n + m columns */
    const int *diagonal;         /* (n + m,) where its diagonal is */
    const int *column;           /* (free,) which column of the program a variable is */
    const int *equation;         /* (m,) which row of the program an equation is */
    const int *slack_row, *slack_to;   /* (n - free,) the equation of a slack, where its -1 goes */
    const int *w_from, *w_to;    /* (w_count,) entries of the Hessian, where they go */
    const int *j_from, *j_to, *j_row, *j_col; /* (j_count,) entries of the Jacobian, where they go, what they are of */
    double *all, *cost, *g, *gradient, *jacobian, *hessian, *cost_factor, *row_factors;
    const double *value;         /* (m,) of the rows that have one, 0 of the others */
    double *low, *up;            /* (n,) */
    double *x, *y, *zl, *zu;     /* the iterate: (n,), (m,) and multipliers (n,) of the limits */
    Evaluate evaluate;
    const Call *calls;           /* compiled: cost, rows, gradient, Jacobian, Hessian; NULL where they are not */
    double barrier, push;        /* at the beginning */
    double kappa_early;          /* in place of kappa_epsilon (equation 7) while the barrier is large */
    double second_below;         /* barrier below which steps of second order are tried */
    int warm;                    /* whether multipliers are given */
} SearchData;

typedef struct {
    SearchData g;
    System system;
    Factor *factor;
    double *work, *k;                         /* all arrays; entries of the matrix without what is added */
    double *c, *slopes, *dual;                /* rows, gradient, gradient of the Lagrangian without multipliers zl, zu */
    double *step, *side, *left, *dzl, *dzu;   /* (n + m,) Newton's step, right-hand side, residual */
    double *low, *up;                         /* (n,) limits as they are given */
    double *before, *c_before, *c_soc, *soc, *row_scale;
    double *second, *product_low, *product_up; /* (n + m,) step of second order; (n,) what it adds to equation 13 */
    double f, cost_scale, mu, tau, theta_max, theta_min, shift, last_shift, threshold, step_size, alpha, asked;
    Reals filter, history;
    int iterations, begun;
    int has_second; /* whether `second` is to be tried, then whether it is the step */
    int tiny, singular; /* steps that were too small, matrices that were singular, one after the other */
} Interior;

static const double HUGE_NUMBER = 1e19;

/* As fmax and fmin, of which the compiler makes calls; of NaN and a number they are the number. */
static double larger(double a, double b) { return a > b || b != b ? a : b; }
static double smaller(double a, double b) { return a < b || b != b ? a : b; }

static int has_low(const Interior *t, int i) { return t->g.low[i] > -HUGE_NUMBER; }
static int has_up(const Interior *t, int i) { return t->g.up[i] < HUGE_NUMBER; }

/* The largest size; not a number if one is none. Sizes are compared as integers, which have the same order: many at once,
   and those that are not numbers are the largest. */
static double largest_of(const double *v, int n) {
    int64_t found = 0, bits;
    for (int i = 0; i < n; i++) {
        memcpy(&bits, v + i, sizeof(bits));
        bits &= INT64_MAX;
        if (bits > found) found = bits;
    }
    double largest;
    memcpy(&largest, &found, sizeof(largest));
    return largest;
}

static double sum_of(const double *v, int n) {
    double found = 0.0;
    for (int i = 0; i < n; i++) found += fabs(v[i]);
    return found;
}

void interior_free(Interior *t) {
    if (!t) return;
    free_factor(t->factor), release(t->system.analysis);
    free(t->work), free(t->filter.at), free(t->history.at), free(t);
}

Interior *interior_new(const SearchData *given) {
    Interior *t = calloc(1, sizeof(Interior));
    if (!t) return NULL;
    int n = given->n, m = given->m;
    t->g = *given;
    t->work = calloc((size_t)(14 * (ptrdiff_t)n + 9 * (ptrdiff_t)m + given->nz + 1), sizeof(double));
    if (!t->work) {
        interior_free(t);
        return NULL;
    }
    double *at = t->work;
    t->slopes = at, at += n, t->dual = at, at += n, t->dzl = at, at += n, t->dzu = at, at += n;
    t->low = at, at += n, t->up = at, at += n, t->before = at, at += n;
    t->product_low = at, at += n, t->product_up = at, at += n, t->second = at, at += n + m;
    t->c = at, at += m, t->c_before = at, at += m, t->c_soc = at, at += m, t->row_scale = at, at += m;
    t->step = at, at += n + m, t->side = at, at += n + m, t->left = at, at += n + m, t->soc = at, at += n + m, t->k = at;
    memcpy(t->low, given->low, (size_t)n * sizeof(double)), memcpy(t->up, given->up, (size_t)n * sizeof(double));
    t->system = (System){n + m, given->nz, (int *)given->begin, (int *)given->row, NULL};
    t->cost_scale = 1.0, t->threshold = 1e-8, t->mu = given->barrier;
    for (int i = 0; i < m; i++) t->row_scale[i] = 1.0;
    return t;
}

const double *interior_history(const Interior *t, int *count) {
    *count = (int)(t->history.size / 6);
    return t->history.at;
}

double interior_cost(const Interior *t) { return t->f / t->cost_scale; }
