/* Separable sharing problems, frame after frame, by Newton's method on their duals: see dual_newton.py for the method.

   Each connected part of the problem (a block) is solved by itself, first from its multipliers in the frame before. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef long long integer;

#define TOLERANCE 1e-13
#define ACCEPTED 1e-10
#define ITERATIONS 60
#define PATIENCE 6
#define MARGIN 1e-9
#define FALL 1e-4
#define HALVINGS 12
#define MIN_SHIFT 1e-15
#define DAMPING 1e-3
#define GUESSED_DAMPING 1e-8
#define MOST_DAMPING 1e8
#define MIN_PIVOT 1e-14
#define INVERSE_STEPS 60

enum { UNSOLVED = 0, CONVERGED = 1, INFEASIBLE = 2 };

/* Numbers of each variable, the same in all frames or (variables, frames). */
typedef struct {
    const double *data;
    integer columns;
} Table;

typedef struct {
    integer frames, rows, variables, saturating;
    const double *matrix, *needed, *lower, *upper; /* (frames, rows, variables), (frames, rows), (frames, variables) */
    Table weight, exponent, quadratic, linear;
} Problem;

typedef struct {
    integer m, v, guessed;
    integer *row, *column; /* of the problem */
    integer *first;        /* (v + 1) first entry of each column */
    integer *entry_row;    /* of the block */
    integer *offset;       /* of each entry in the matrix of a frame */
} Block;

/* One block in one frame, and where Newton's method stands. */
typedef struct {
    const Block *block;
    integer saturating, powers; /* whether any variable has a power in its cost */
    double *a, *needed, *lower, *upper, *weight, *exponent, *quadratic, *linear;
    double *multipliers, *x, *slope, *residual;                        /* the state */
    double *next_multipliers, *next_x, *next_slope, *next_residual;    /* the state tried */
    double *direction, *s, *turned, *normal, *scale, *swap;
} Frame;

/* Written out: the library's fmin and fmax are calls. */
static inline double larger(double a, double b) { return a > b ? a : b; }
static inline double smaller(double a, double b) { return a < b ? a : b; }

static double power(double x, double exponent)
{
    if (exponent == 1.0) return x;
    if (exponent == 0.5) return sqrt(x);
    if (exponent == 0.0) return 1.0;
    if (exponent == 2.0) return x * x;
    return pow(x, exponent);
}

static double slope_of(const Frame *f, integer j, double x)
{
    double w = f->weight[j], p = f->exponent[j], size = fabs(x), total = f->quadratic[j] * x;
    if (w > 0.0) total += f->saturating ? w * x / sqrt(1.0 - x * x) : copysign(w * p * power(size, p - 1.0), x);
    return total;
}

static double curvature_of(const Frame *f, integer j, double x)
{
    double w = f->weight[j], p = f->exponent[j], total = f->quadratic[j], rest = 1.0 - x * x;
    if (w > 0.0 && f->saturating) total += p != 1.0 ? w / (rest * sqrt(rest)) : 0.0;
    else if (w > 0.0 && p != 1.0) total += w * p * (p - 1.0) * power(fabs(x), p - 2.0);
    return total;
}

/* The x >= 0 at which the slope without its constant is size >= 0. */
static double inverse_of_size(const Frame *f, integer j, double size)
{
    double w = f->weight[j], p = f->exponent[j], q = f->quadratic[j], x = INFINITY, straight;
    if (w > 0.0 && f->saturating) {
        double ratio = size / w;
        x = isfinite(ratio) ? ratio / sqrt(1.0 + ratio * ratio) : 1.0;
    } else if (w > 0.0) {
        x = power(size / (w * p), 1.0 / (p - 1.0));
    }
    straight = q > 0.0 ? size / q : INFINITY;
    if (straight < x) x = straight;
    if (!(w > 0.0 && q > 0.0)) return x;
    for (integer i = 0; i < INVERSE_STEPS && x > 0.0; i++) { /* monotone from above: the slope is convex on x >= 0 */
        double step = (slope_of(f, j, x) - size) / curvature_of(f, j, x);
        if (!(step > 0.0)) break;
        x = larger(x - step, 0.0);
        if (step <= 1e-15 * x) break;
    }
    return x;
}

/* The x within the bounds at which cost less s x is least, and dx/ds in `slope`, unless that is NULL. */
static double best(const Frame *f, integer j, double s, double *slope)
{
    double rest = s - f->linear[j], x, clipped;
    if (f->weight[j] > 0.0) x = copysign(inverse_of_size(f, j, fabs(rest)), rest);
    else x = rest / f->quadratic[j];
    clipped = smaller(larger(x, f->lower[j]), f->upper[j]);
    if (slope) {
        if (clipped != x) *slope = 0.0;
        else *slope = 1.0 / (f->weight[j] > 0.0 ? larger(curvature_of(f, j, x), 1e-300) : f->quadratic[j]);
    }
    return clipped;
}

static void transposed_times(const Frame *f, const double *y, double *s)
{
    const Block *b = f->block;
    for (integer j = 0; j < b->v; j++) {
        double sum = 0.0;
        for (integer e = b->first[j]; e < b->first[j + 1]; e++) sum += f->a[e] * y[b->entry_row[e]];
        s[j] = sum;
    }
}

/* x, dx/ds and A x - needed at multipliers with A^T y = s. */
static void evaluate(const Frame *f, const double *s, double *x, double *slope, double *residual)
{
    const Block *b = f->block;
    for (integer i = 0; i < b->m; i++) residual[i] = -f->needed[i];
    for (integer j = 0; j < b->v; j++) {
        x[j] = best(f, j, s[j], &slope[j]);
        for (integer e = b->first[j]; e < b->first[j + 1]; e++) residual[b->entry_row[e]] += f->a[e] * x[j];
    }
}

static double dot(integer n, const double *a, const double *b)
{
    double sum = 0.0;
    for (integer i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static double largest(integer n, const double *a)
{
    double most = 0.0;
    for (integer i = 0; i < n; i++) {
        if (isnan(a[i])) return a[i];
        most = larger(most, fabs(a[i]));
    }
    return most;
}

/* The lower triangle of A diag(d) A^T; returns its trace. */
static double normal_matrix(const Frame *f, const double *d, double *normal)
{
    const Block *b = f->block;
    double trace = 0.0;
    memset(normal, 0, (size_t)(b->m * b->m) * sizeof *normal);
    for (integer j = 0; j < b->v; j++) {
        if (d[j] == 0.0) continue;
        for (integer e = b->first[j]; e < b->first[j + 1]; e++) {
            double *line = normal + b->entry_row[e] * b->m, scaled = f->a[e] * d[j];
            for (integer k = b->first[j]; k <= e; k++) line[b->entry_row[k]] += scaled * f->a[k];
        }
    }
    for (integer i = 0; i < b->m; i++) trace += normal[i * b->m + i];
    return trace;
}

/* x for the lower triangle of a definite matrix, which is overwritten, by Cholesky's factorisation after scaling to a
   diagonal of 1. Pivots that are rounding belong to rows that depend on others: their unknowns are 0. */
static void solve_definite(integer m, double *matrix, double *scale, const double *right, double *x)
{
    for (integer i = 0; i < m; i++) scale[i] = matrix[i * m + i] > 0.0 ? 1.0 / sqrt(matrix[i * m + i]) : 0.0;
    for (integer i = 0; i < m; i++) {
        double *line = matrix + i * m, sum = right[i] * scale[i];
        for (integer j = 0; j <= i; j++) {
            double entry = line[j] * scale[i] * scale[j] - dot(j, line, matrix + j * m);
            /* the diagonal holds inverses of the factor's */
            line[j] = j < i ? entry * matrix[j * m + j] : entry > MIN_PIVOT ? 1.0 / sqrt(entry) : 0.0;
        }
        x[i] = (sum - dot(i, line, x)) * line[i];
    }
    for (integer j = m - 1; j >= 0; j--) {
        x[j] *= matrix[j * m + j];
        for (integer i = 0; i < j; i++) x[i] -= matrix[j * m + i] * x[j];
    }
    for (integer i = 0; i < m; i++) x[i] *= scale[i];
}

/* The mean diagonal of A D A^T for variables within their ranges. */
static double size_of_normal(const Frame *f)
{
    const Block *b = f->block;
    double total = 0.0;
    for (integer j = 0; j < b->v; j++) {
        double middle = smaller(larger(0.5 * (larger(f->lower[j], -1.0) + smaller(f->upper[j], 1.0)), 0.1), 0.5);
        double d = 1.0 / larger(curvature_of(f, j, middle), 1e-12);
        for (integer e = b->first[j]; e < b->first[j + 1]; e++) total += f->a[e] * f->a[e] * d;
    }
    return total / (double)b->m;
}

/* Whether the multipliers y prove that nothing solves the frame: y . needed > max over x of y . (A x). */
static int proves_infeasible(const Frame *f)
{
    const Block *b = f->block;
    double reached = 0.0, needed = 0.0, size = 0.0;
    transposed_times(f, f->multipliers, f->s);
    for (integer j = 0; j < b->v; j++) {
        double part = f->s[j] == 0.0 ? 0.0 : f->s[j] * (f->s[j] > 0.0 ? f->upper[j] : f->lower[j]);
        reached += part;
        size += fabs(part);
    }
    for (integer i = 0; i < b->m; i++) {
        needed += f->multipliers[i] * f->needed[i];
        size += fabs(f->multipliers[i] * f->needed[i]);
    }
    return needed - reached > MARGIN * size;
}

static void swap(double **a, double **b)
{
    double *first = *a;
    *a = *b;
    *b = first;
}

/* The slope of the convex dual after a part of the step along the direction. */
static double dual_slope(const Frame *f, double step, double constant)
{
    double sum = -constant;
    for (integer j = 0; j < f->block->v; j++)
        sum += best(f, j, f->s[j] + step * f->turned[j], NULL) * f->turned[j];
    return sum;
}

/* Moves along the direction; returns how often the step was halved. A whole step is taken if the residual decreases.
   Else the step goes to the zero of the dual's slope, between the largest halved step with a negative slope and the
   one before: by the secant, which is exact for squares as long as no variable reaches a bound on the way. */
static integer search(Frame *f)
{
    const Block *b = f->block;
    integer halvings = 0;
    double before = dot(b->m, f->residual, f->residual), constant, high, low, upper_step = 1.0, step = 1.0;
    transposed_times(f, f->multipliers, f->s);
    transposed_times(f, f->direction, f->turned);
    for (integer i = 0; i < b->m; i++) f->next_multipliers[i] = f->multipliers[i] + f->direction[i];
    for (integer j = 0; j < b->v; j++) f->scale[j] = f->s[j] + f->turned[j];
    evaluate(f, f->scale, f->next_x, f->next_slope, f->next_residual);
    if (dot(b->m, f->next_residual, f->next_residual) > (1.0 - FALL) * before) {
        constant = dot(b->m, f->needed, f->direction);
        low = high = dual_slope(f, 1.0, constant);
        while (!(low <= 0.0) && halvings < HALVINGS) {
            upper_step = step;
            high = low;
            halvings++;
            step = halvings < HALVINGS ? 0.5 * step : 0.0;
            low = dual_slope(f, step, constant);
        }
        if (high > low) step += (upper_step - step) * (-low / (high - low));
        for (integer i = 0; i < b->m; i++) f->next_multipliers[i] = f->multipliers[i] + step * f->direction[i];
        for (integer j = 0; j < b->v; j++) f->scale[j] = f->s[j] + step * f->turned[j];
        evaluate(f, f->scale, f->next_x, f->next_slope, f->next_residual);
    }
    swap(&f->multipliers, &f->next_multipliers);
    swap(&f->x, &f->next_x);
    swap(&f->slope, &f->next_slope);
    swap(&f->residual, &f->next_residual);
    return halvings;
}

/* Newton's method from the multipliers in the frame; returns the outcome and adds to the iterations. */
static int newton(Frame *f, int guessed, integer *iterations)
{
    const integer m = f->block->m;
    double damping = guessed ? GUESSED_DAMPING : DAMPING, size = larger(1.0, largest(m, f->needed));
    transposed_times(f, f->multipliers, f->s);
    evaluate(f, f->s, f->x, f->slope, f->residual);
    for (integer iteration = 0;; iteration++, ++*iterations) {
        double error = largest(m, f->residual), shift;
        integer halvings;
        if (error <= TOLERANCE * size) return CONVERGED;
        if (iteration == ITERATIONS || !(damping <= MOST_DAMPING) || isnan(error))
            return error <= ACCEPTED * size ? CONVERGED : UNSOLVED;
        if (iteration >= PATIENCE && proves_infeasible(f)) return error <= ACCEPTED * size ? CONVERGED : INFEASIBLE;
        shift = normal_matrix(f, f->slope, f->normal) / (double)m;
        if (shift == 0.0) shift = size_of_normal(f); /* every variable is at a bound */
        shift *= MIN_SHIFT + damping * smaller(1.0, error / size);
        for (integer i = 0; i < m; i++) {
            f->normal[i * m + i] += shift;
            f->next_residual[i] = -f->residual[i];
        }
        solve_definite(m, f->normal, f->scale, f->next_residual, f->direction);
        halvings = search(f);
        if (halvings == 0) damping *= 0.1;
        else if (halvings == HALVINGS) damping *= 100.0;
    }
}

/* Multipliers of the unclipped minimiser of a quadratic cost. */
static void first_of_squares(Frame *f)
{
    const Block *b = f->block;
    for (integer j = 0; j < b->v; j++) {
        f->slope[j] = 1.0 / f->quadratic[j];
        f->x[j] = smaller(larger(-f->linear[j] * f->slope[j], f->lower[j]), f->upper[j]);
    }
    for (integer i = 0; i < b->m; i++) f->residual[i] = f->needed[i];
    for (integer j = 0; j < b->v; j++)
        for (integer e = b->first[j]; e < b->first[j + 1]; e++) f->residual[b->entry_row[e]] -= f->a[e] * f->x[j];
    normal_matrix(f, f->slope, f->normal);
    solve_definite(b->m, f->normal, f->scale, f->residual, f->multipliers);
}

/* Those, or for other costs the ones that fit the slopes at the minimiser of the weighted squares best. */
static void first_multipliers(Frame *f, integer *iterations)
{
    const Block *b = f->block;
    Frame squares = *f;
    if (!f->powers) {
        first_of_squares(f);
        return;
    }
    squares.quadratic = f->swap;
    squares.weight = f->swap + b->v;
    squares.saturating = squares.powers = 0;
    for (integer j = 0; j < b->v; j++) {
        squares.quadratic[j] = f->quadratic[j] + 2.0 * f->weight[j];
        squares.weight[j] = 0.0;
    }
    first_of_squares(&squares);
    newton(&squares, 0, iterations);
    for (integer i = 0; i < b->m; i++) f->residual[i] = 0.0;
    for (integer j = 0; j < b->v; j++) {
        double x = squares.x[j], free = x > f->lower[j] && x < f->upper[j], fitted;
        if (f->saturating) x = smaller(larger(x, -0.999), 0.999);
        f->slope[j] = free / larger(curvature_of(f, j, x), 1e-12) + 1e-9;
        fitted = f->slope[j] * (slope_of(f, j, x) + f->linear[j]);
        for (integer e = b->first[j]; e < b->first[j + 1]; e++) f->residual[b->entry_row[e]] += f->a[e] * fitted;
    }
    normal_matrix(f, f->slope, f->normal);
    solve_definite(b->m, f->normal, f->scale, f->residual, f->multipliers);
}

static double at(const Table *table, integer variable, integer frame)
{
    return table->data[variable * table->columns + (table->columns > 1 ? frame : 0)];
}

/* What the frame k of the problem states of the block. */
static void gather(Frame *f, const Problem *p, const Block *b, integer k)
{
    const double *matrix = p->matrix + k * p->rows * p->variables;
    f->block = b;
    f->saturating = p->saturating;
    f->powers = 0;
    for (integer i = 0; i < b->m; i++) f->needed[i] = p->needed[k * p->rows + b->row[i]];
    for (integer j = 0; j < b->v; j++) {
        integer column = b->column[j];
        f->lower[j] = p->lower[k * p->variables + column];
        f->upper[j] = p->upper[k * p->variables + column];
        f->weight[j] = at(&p->weight, column, k);
        f->exponent[j] = at(&p->exponent, column, k);
        f->quadratic[j] = at(&p->quadratic, column, k);
        f->linear[j] = at(&p->linear, column, k);
        f->powers |= f->weight[j] > 0.0;
    }
    for (integer e = 0; e < b->first[b->v]; e++) f->a[e] = matrix[b->offset[e]];
}

/* The label of each row (rows) and variable: variables of a row share the row's; -1 for variables without a row.
   Returns the number of labels. */
static integer components(const Problem *p, const unsigned char *is_entry, integer *row_label, integer *column_label)
{
    integer count = 0, changed = 1;
    for (integer i = 0; i < p->rows; i++) row_label[i] = i;
    for (integer j = 0; j < p->variables; j++) column_label[j] = -1;
    while (changed) { /* the smallest row that each hangs together with */
        changed = 0;
        for (integer i = 0; i < p->rows; i++)
            for (integer j = 0; j < p->variables; j++) {
                if (!is_entry[i * p->variables + j] || column_label[j] == row_label[i]) continue;
                if (column_label[j] < 0 || column_label[j] > row_label[i]) column_label[j] = row_label[i];
                else row_label[i] = column_label[j];
                changed = 1;
            }
    }
    for (integer i = 0; i < p->rows; i++) { /* first rows have themselves as label and come first */
        integer label = row_label[i];
        if (label != i) continue;
        for (integer k = 0; k < p->rows; k++) row_label[k] = row_label[k] == label ? -2 - count : row_label[k];
        for (integer j = 0; j < p->variables; j++)
            if (column_label[j] == label) column_label[j] = -2 - count;
        count++;
    }
    for (integer i = 0; i < p->rows; i++) row_label[i] = -2 - row_label[i];
    for (integer j = 0; j < p->variables; j++)
        if (column_label[j] < -1) column_label[j] = -2 - column_label[j];
    return count;
}

/* Fills the blocks of each label; returns the number of entries used. */
static void arrange(const Problem *p, const unsigned char *is_entry, const integer *row_label,
                    const integer *column_label, integer count, Block *blocks, integer *room)
{
    for (integer c = 0; c < count; c++) {
        Block *b = blocks + c;
        integer entries = 0;
        memset(b, 0, sizeof *b);
        b->row = room;
        for (integer i = 0; i < p->rows; i++)
            if (row_label[i] == c) b->row[b->m++] = i;
        b->column = b->row + b->m;
        for (integer j = 0; j < p->variables; j++)
            if (column_label[j] == c) b->column[b->v++] = j;
        b->first = b->column + b->v;
        for (integer j = 0; j < b->v; j++)
            for (integer i = 0; i < b->m; i++) entries += is_entry[b->row[i] * p->variables + b->column[j]];
        b->entry_row = b->first + b->v + 1;
        b->offset = b->entry_row + entries;
        room = b->offset + entries;
        entries = 0;
        for (integer j = 0; j < b->v; j++) {
            b->first[j] = entries;
            for (integer i = 0; i < b->m; i++) {
                integer offset = b->row[i] * p->variables + b->column[j];
                if (!is_entry[offset]) continue;
                b->entry_row[entries] = i;
                b->offset[entries++] = offset;
            }
        }
        b->first[b->v] = entries;
    }
}

static double *part(double **room, integer size)
{
    double *begin = *room;
    *room += size;
    return begin;
}

/* Solves all frames. `row_label` (rows) and `column_label` (variables) number the blocks, -1 for variables without a
   row, which are at their cheapest value. `outcome` (frames, rows) is that of each block in the first columns. `x`
   (frames, variables), `multipliers` (frames, rows), `iterations` (frames,) the largest of its blocks. Returns the number
   of blocks, -1 without memory. */
integer designopt_share(const integer *sizes, const double *const *arrays, const integer *columns, integer *row_label,
                        integer *column_label, signed char *outcome, double *x, double *multipliers,
                        integer *iterations)
{
    Problem p = {sizes[0], sizes[1], sizes[2], sizes[3], arrays[0], arrays[1], arrays[2], arrays[3],
                 {arrays[4], columns[0]}, {arrays[5], columns[1]}, {arrays[6], columns[2]}, {arrays[7], columns[3]}};
    const integer m = p.rows, v = p.variables, size = m * v;
    unsigned char *is_entry = calloc((size_t)size + 1, 1);
    integer *room = malloc((size_t)(2 * size + 3 * (m + v) + 1) * sizeof *room), count, idle = 0;
    Block *blocks = malloc((size_t)(m + 1) * sizeof *blocks);
    double *numbers = malloc((size_t)(size + m * m + 8 * m + 16 * (m + v)) * sizeof *numbers), *next = numbers;
    Frame f;
    if (!is_entry || !room || !blocks || !numbers) {
        free(is_entry), free(room), free(blocks), free(numbers);
        return -1;
    }
    for (integer k = 0; k < p.frames; k++) {
        const double *matrix = p.matrix + k * size;
        for (integer i = 0; i < size; i++) is_entry[i] |= matrix[i] != 0.0;
    }
    count = components(&p, is_entry, row_label, column_label);
    arrange(&p, is_entry, row_label, column_label, count, blocks, room);
    f.a = part(&next, size), f.normal = part(&next, m * m);
    f.needed = part(&next, m), f.multipliers = part(&next, m), f.residual = part(&next, m);
    f.next_multipliers = part(&next, m), f.next_residual = part(&next, m), f.direction = part(&next, m);
    f.lower = part(&next, v), f.upper = part(&next, v), f.weight = part(&next, v), f.exponent = part(&next, v);
    f.quadratic = part(&next, v), f.linear = part(&next, v), f.x = part(&next, v), f.slope = part(&next, v);
    f.next_x = part(&next, v), f.next_slope = part(&next, v), f.s = part(&next, v), f.turned = part(&next, v);
    f.swap = part(&next, 2 * v), f.scale = part(&next, m + v);
    for (integer c = 0; c < count; c++) blocks[c].guessed = 0;
    for (integer j = 0; j < v; j++) idle |= column_label[j] < 0;
    for (integer k = 0; k < p.frames; k++) {
        double *const frame_x = x + k * v, *const frame_multipliers = multipliers + k * m;
        iterations[k] = 0;
        for (integer c = 0; c < count; c++) {
            Block *b = blocks + c;
            integer steps = 0;
            int result = UNSOLVED;
            gather(&f, &p, b, k);
            if (b->guessed) {
                for (integer i = 0; i < b->m; i++) f.multipliers[i] = frame_multipliers[b->row[i] - m];
                result = newton(&f, 1, &steps);
            }
            if (result == UNSOLVED) {
                first_multipliers(&f, &steps);
                result = newton(&f, 0, &steps);
            }
            b->guessed = result == CONVERGED;
            outcome[k * m + c] = (signed char)result;
            iterations[k] = steps > iterations[k] ? steps : iterations[k];
            for (integer i = 0; i < b->m; i++) frame_multipliers[b->row[i]] = f.multipliers[i];
            for (integer j = 0; j < b->v; j++) frame_x[b->column[j]] = f.x[j];
        }
        if (idle) {
            Block alone = {0};
            for (integer j = 0; j < v; j++) {
                integer first[2] = {0, 0};
                if (column_label[j] >= 0) continue;
                alone.v = 1, alone.column = &j, alone.first = first;
                gather(&f, &p, &alone, k);
                frame_x[j] = best(&f, 0, 0.0, NULL);
            }
        }
    }
    free(is_entry), free(room), free(blocks), free(numbers);
    return count;
}
