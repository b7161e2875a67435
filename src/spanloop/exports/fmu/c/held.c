/* ---- starts that are kept while the loops close
 *
 * close_part(x) is the point of the closed loops that a projection finds from x, q or v. Newton's method moves along
 * them (columns of the derivative of close_part), until what was set is there as it was set.
 */

#define NEWTON 12          /* rounds, at most */
#define EXACT 1e-13        /* relative to 1 + |x|: reached */
#define SMALLEST 1e-7      /* pivot: what is below follows from the others */

/* The projection of x, n numbers that are q or v (at AT_Q or AT_V), into m; velocities where q is. */
static int close_part(instance *s, int at, int n, const double *x)
{
    double left = 0.0, *m = s->now.m;
    int bits;
    memcpy(m + at, x, (size_t)n * sizeof(double));
    if (at == AT_Q) {
        bits = project(s, &left);
        return bits || !(left <= ENOUGH + 2.0 * OPEN_AT_START);
    }
    bits = model_closing(m);
    memcpy(m + AT_V, m + AT_CLOSING + N_Q, N_V * sizeof(double));
    return bits || !all_finite(m + AT_V, N_V);
}

/* Solve a y = r (n numbers in the last column of a) with complete pivoting; y is 0 where pivots are small. */
static void solve(double *a, int n, int *order, double *y)
{
    const int width = n + 1;
    int i, j, k, row, column, rank = n;
    double x;
    for (k = 0; k < n; k++) order[k] = k;
    for (k = 0; k < n; k++) {
        row = column = k;
        for (i = k; i < n; i++)
            for (j = k; j < n; j++)
                if (fabs(a[i * width + j]) > fabs(a[row * width + column])) row = i, column = j;
        if (!(fabs(a[row * width + column]) > SMALLEST)) {
            rank = k;
            break;
        }
        for (j = 0; j < width; j++) x = a[k * width + j], a[k * width + j] = a[row * width + j], a[row * width + j] = x;
        for (i = 0; i < n; i++) x = a[i * width + k], a[i * width + k] = a[i * width + column], a[i * width + column] = x;
        i = order[k], order[k] = order[column], order[column] = i;
        for (i = k + 1; i < n; i++) {
            x = a[i * width + k] / a[k * width + k];
            for (j = k; j < width; j++) a[i * width + j] -= x * a[k * width + j];
        }
    }
    for (k = 0; k < n; k++) y[k] = 0.0;
    for (k = rank - 1; k >= 0; k--) {
        x = a[k * width + n];
        for (j = k + 1; j < rank; j++) x -= a[k * width + j] * y[order[j]];
        y[order[k]] = x / a[k * width + k];
    }
}

/* Column j of the derivative of close_part at x: all n numbers. */
static int column_of(instance *s, int at, int n, double *x, int j, double *column)
{
    const double own = x[j], h = at == AT_Q ? 1e-4 : 1.0;
    int k, bits;
    x[j] = own + h;
    bits = close_part(s, at, n, x);
    memcpy(column, s->now.m + at, (size_t)n * sizeof(double));
    x[j] = own - h;
    bits |= close_part(s, at, n, x);
    for (k = 0; k < n; k++) column[k] = (column[k] - s->now.m[at + k]) / (2.0 * h);
    x[j] = own;
    return bits;
}

/* |now - wanted|, relative to 1 + |wanted|. */
static double change(double now, double wanted)
{
    return fabs(now - wanted) / (1.0 + fabs(wanted));
}

/* Whether the projection moves nothing but number j with it: a joint outside the loops. */
static int is_alone(const double *column, int n, int j)
{
    int k;
    for (k = 0; k < n; k++)
        if (!(fabs(column[k] - (k == j ? 1.0 : 0.0)) < 1e-7)) return 0;
    return 1;
}

/* The closed point with the numbers x[k], set[k], and those outside the loops, as they are, into m. The work space has
 * n (2 n + 4) numbers, kept and order n each. Returns whether they are kept. */
static int close_with(instance *s, int at, int n, const double *wanted, const unsigned char *set, double *work, int *kept,
                      int *order)
{
    double *x = work, *y = x + n, *column = y + n, *columns = column + n, *a = columns + n * n, most, before = INFINITY;
    int round, i, j, k, count;
    memcpy(x, wanted, (size_t)n * sizeof(double));
    for (round = 0; round < NEWTON; round++) {
        if (close_part(s, at, n, x)) return 0;
        for (most = 0.0, j = 0; j < n; j++)
            if (set[j] && !(change(s->now.m[at + j], wanted[j]) <= most)) most = change(s->now.m[at + j], wanted[j]);
        if (most <= EXACT || !(most <= 0.5 * before)) return most <= KEPT;
        before = most;
        memcpy(y, s->now.m + at, (size_t)n * sizeof(double));
        for (count = 0, j = 0; j < n; j++) {
            if (column_of(s, at, n, x, j, columns + count * n)) return 0;
            if (set[j] || is_alone(columns + count * n, n, j)) kept[count++] = j;
            if (count == n) break;
        }
        for (i = 0; i < count; i++) {
            for (j = 0; j < count; j++) a[i * (count + 1) + j] = columns[j * n + kept[i]];
            a[i * (count + 1) + count] = wanted[kept[i]] - y[kept[i]];
        }
        solve(a, count, order, column);
        for (k = 0; k < n; k++) {
            x[k] = y[k];
            for (i = 0; i < count; i++) x[k] += column[i] * columns[i * n + k];
        }
    }
    return 0;
}

/* close_with; where not all that was set can be kept, with those that differ from the exported start. */
static int close_keeping(instance *s, int at, int n, const double *wanted, const unsigned char *set)
{
    double *work = malloc((size_t)n * (2 * (size_t)n + 4) * sizeof(double));
    int *numbers = malloc(2 * (size_t)n * sizeof(int)), k, kept = 0;
    unsigned char *other = malloc((size_t)n);
    if (work && numbers && other) {
        kept = close_with(s, at, n, wanted, set, work, numbers, numbers + n);
        for (k = 0; k < n; k++) other[k] = set[k] && wanted[k] != at_start(at + k);
        if (!kept && memcmp(other, set, (size_t)n) != 0) kept = close_with(s, at, n, wanted, other, work, numbers, numbers + n);
    }
    free(work), free(numbers), free(other);
    return kept;
}

/* Refuse a start that the loops change: the plain projection shows how. */
static status refuse_change(instance *s, int at, int n, const double *wanted, const unsigned char *set)
{
    const int kind = at == AT_Q ? POSITION : VELOCITY, lost = close_part(s, at, n, wanted);
    int k, worst = 0;
    for (k = 0; k < n; k++)
        if (set[k] && (!set[worst] || change(s->now.m[at + k], wanted[k]) > change(s->now.m[at + worst], wanted[worst])))
            worst = k;
    if (lost || !set[worst])
        return say(s, ERROR, "the start: the loops cannot be closed from here. Set all q.* to a closed position");
    return say(s, ERROR, "the start: the loops cannot be closed with what was set: %s, set to %.9g, would become %.9g. Set "
               "it more exactly, or set independent joints alone: the others follow", name_of(kind, worst), wanted[worst],
               s->now.m[at + worst]);
}
