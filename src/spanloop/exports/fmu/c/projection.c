/* ---- closed loops, quaternions of unit length */

/* Projections until nothing is left to correct; the closure error that is left in *left. */
static int project(instance *s, double *left)
{
    double *m = s->now.m, before = INFINITY;
    int k, bits;
    for (k = 0; k < ROUNDS; k++) {
        bits = model_closing(m);
        if (bits) return bits;
        memcpy(m + AT_Q, m + AT_CLOSING, N_Q * sizeof(double));
        memcpy(m + AT_V, m + AT_CLOSING + N_Q, N_V * sizeof(double));
        *left = m[AT_CLOSING + N_Q + N_V + 1];
        if (*left <= CLOSED || *left > 0.5 * before) break;
        before = *left;
    }
    return 0;
}

/* The largest change of q and v by a projection, relative to 1 + |x|, after model_closing. */
static double drift(const double *m)
{
    double most = 0.0;
    int k;
    for (k = 0; k < N_Q + N_V; k++) {
        const double x = k < N_Q ? m[AT_Q + k] : m[AT_V + k - N_Q];
        const double d = fabs(m[AT_CLOSING + k] - x) / (1.0 + fabs(x));
        if (d > most) most = d;
    }
    return most;
}

static double at_start(int place)
{
    int k;
    for (k = 0; k < N_START; k++)
        if (starts[k].place == place) return starts[k].value;
    return 0.0;
}

static int as_exported(const instance *s, int first, int n)
{
    int k;
    for (k = 0; k < n; k++)
        if (s->now.m[first + k] != at_start(first + k)) return 0;
    return 1;
}
