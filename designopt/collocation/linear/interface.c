/* What IPOPT calls: it loads a library by the names and with the structures of the solver HSL_MA97, of which this is no
   part (they are those of IPOPT's own declarations). */

struct control {
    int f_arrays, action, nemin;
    double multiplier;
    int ordering, print_level, scaling;
    double small, u;
    int unit_diagnostics, unit_error, unit_warning;
    long factor_min;
    int solve_blas3;
    long solve_min;
    int solve_mf;
    double consist_tol;
    int ispare[5];
    double rspare[10];
};

struct info {
    int flag, flag68, flag77, matrix_dup, matrix_rank, matrix_outrange, matrix_missing_diag, maxdepth, maxfront;
    int num_delay;
    long num_factor, num_flops;
    int num_neg, num_sup, num_two, ordering, stat, maxsupernode;
    int ispare[4];
    double rspare[10];
};

/* Analyses are kept for the next program of the same pattern: so many, and no larger ones than this. */
enum { KEPT = 16, LARGEST_KEPT = 4000000 };

static Analysis *known;
static char locked;

static void lock(void) {
    while (__atomic_test_and_set(&locked, __ATOMIC_ACQUIRE)) {}
}

static void unlock(void) { __atomic_clear(&locked, __ATOMIC_RELEASE); }

/* One solver of IPOPT: a pattern that starts from 0, then its analysis. */
typedef struct {
    int n, nz, *begin, *row;
    Analysis *analysis;
} System;

static int is_of(const Analysis *t, const System *s, const int *partner, const int *of_nodes) {
    return t->n == s->n && t->begin[t->n] == s->nz &&
           !memcmp(t->begin, s->begin, (size_t)(s->n + 1) * sizeof(int)) &&
           !memcmp(t->column_rows, s->row, (size_t)s->nz * sizeof(int)) &&
           !memcmp(t->partner, partner, (size_t)s->n * sizeof(int)) &&
           !memcmp(t->of_nodes, of_nodes, (size_t)s->n * sizeof(int));
}

static void release(Analysis *t) {
    if (!t) return;
    lock();
    int last = --t->users == 0;
    unlock();
    if (last) free_analysis(t);
}

/* The analysis of a system whose equations are paired so: a known one, or a new one. */
static Analysis *analysis_of(const System *s, const int *partner, const int *of_nodes) {
    Analysis *found = NULL, *old = NULL;
    lock();
    for (Analysis **at = &known; *at; at = &(*at)->next)
        if (is_of(*at, s, partner, of_nodes)) { /* it becomes the first */
            found = *at, *at = found->next, found->next = known, known = found, found->users++;
            break;
        }
    unlock();
    if (found) return found;
    Pattern pattern = {s->n, s->begin, s->row};
    found = analyse(pattern, partner, of_nodes);
    if (!found) return NULL;
    found->users = 1;
    if (s->nz > LARGEST_KEPT) return found;
    lock();
    int count = 0;
    found->users++, found->next = known, known = found;
    for (Analysis **at = &known; *at; at = &(*at)->next)
        if (++count == KEPT && (*at)->next) old = (*at)->next, (*at)->next = NULL;
    unlock();
    release(old);
    return found;
}

/* Analyses a system, if that is not done, with the pairs of the entries of its first matrix; 0 without memory. */
static int is_analysed(System *s, const double *value) {
    if (s->analysis) return 1;
    Memory memory = {0};
    Pattern pattern = {s->n, s->begin, s->row};
    int *partner = TAKE(&memory, int, 2 * (ptrdiff_t)s->n); /* for fronts, then for nodes */
    if (partner) pair_up(pattern, value, partner, partner + s->n, &memory);
    if (!memory.failed) s->analysis = analysis_of(s, partner, partner + s->n);
    free(partner);
    return s->analysis != NULL;
}

void ma97_default_control_d(struct control *control) {
    memset(control, 0, sizeof(*control));
    control->small = 1e-20, control->u = FIRST_THRESHOLD;
}

void ma97_analyse_d(int check, int n, const int ptr[], const int row[], double val[], void **akeep,
                    const struct control *control, struct info *info, int order[]) {
    (void)check, (void)val, (void)control, (void)order;
    memset(info, 0, sizeof(*info));
    int nz = ptr[n] - 1;
    System *s = calloc(1, sizeof(System));
    if (s) s->begin = malloc((size_t)(n + 1) * sizeof(int)), s->row = malloc((size_t)(nz + 1) * sizeof(int));
    if (!s || !s->begin || !s->row) {
        if (s) free(s->begin), free(s->row), free(s);
        info->flag = NO_MEMORY;
        return;
    }
    s->n = n, s->nz = nz;
    for (int k = 0; k <= n; k++) s->begin[k] = ptr[k] - 1;
    for (int k = 0; k < nz; k++) s->row[k] = row[k] - 1;
    *akeep = s;
}

void ma97_factor_d(int matrix_type, const int ptr[], const int row[], const double val[], void **akeep, void **fkeep,
                   const struct control *control, struct info *info, double scale[]) {
    (void)matrix_type, (void)ptr, (void)row, (void)scale;
    System *s = *akeep;
    memset(info, 0, sizeof(*info));
    info->flag = NO_MEMORY;
    if (!is_analysed(s, val)) return;
    if (!*fkeep) *fkeep = new_factor(s->analysis);
    Factor *t = *fkeep;
    if (!t) return;
    info->flag = factorize(s->analysis, val, control->u, control->small, NULL, t);
    info->num_neg = t->negative, info->num_delay = t->delayed, info->maxfront = t->largest;
    info->num_factor = (long)t->l.size, info->matrix_rank = s->n;
}

void ma97_solve_d(int job, int nrhs, double x[], int ldx, void **akeep, void **fkeep, const struct control *control,
                  struct info *info) {
    (void)job, (void)control;
    System *s = *akeep;
    memset(info, 0, sizeof(*info));
    for (int k = 0; k < nrhs; k++) solve(s->analysis, *fkeep, 0, x + (ptrdiff_t)k * ldx);
}

void ma97_factor_solve_d(int matrix_type, const int ptr[], const int row[], const double val[], int nrhs, double x[],
                         int ldx, void **akeep, void **fkeep, const struct control *control, struct info *info,
                         double scale[]) {
    ma97_factor_d(matrix_type, ptr, row, val, akeep, fkeep, control, info, scale);
    if (info->flag < 0) return;
    struct info of_solve;
    ma97_solve_d(0, nrhs, x, ldx, akeep, fkeep, control, &of_solve);
}

void ma97_free_akeep_d(void **akeep) {
    System *s = *akeep;
    if (!s) return;
    release(s->analysis);
    free(s->begin), free(s->row), free(s);
    *akeep = NULL;
}

void ma97_free_fkeep_d(void **fkeep) {
    free_factor(*fkeep);
    *fkeep = NULL;
}

void ma97_finalise_d(void **akeep, void **fkeep) {
    ma97_free_fkeep_d(fkeep);
    ma97_free_akeep_d(akeep);
}
