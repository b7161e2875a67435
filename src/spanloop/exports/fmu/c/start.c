/* ---- the start: what was set is kept, and the loops are closed around it */

static status report_change(const instance *s, const double *q, const double *v)
{
    double most = 0.0;
    int k, which = 0;
    for (k = 0; k < N_Q + N_V; k++) {
        const int is_q = k < N_Q, at = is_q ? k : k - N_Q;
        const double now = s->now.m[is_q ? AT_Q + at : AT_V + at], was = is_q ? q[at] : v[at];
        if ((is_q ? s->now.set_q[at] : s->now.set_v[at]) && change(now, was) > KEPT)
            (void)say(s, WARNING, "the start: %s was set to %.9g, as it was exported; the closed loops make it %.9g",
                      name_of(is_q ? POSITION : VELOCITY, at), was, now);
        if (fabs(now - was) > most) {
            most = fabs(now - was);
            which = k;
        }
    }
    if (most <= ENOUGH) return OK;
    return say(s, WARNING, "the start was brought to the closed loops: %s changed by %.3g",
               which < N_Q ? name_of(POSITION, which) : name_of(VELOCITY, which - N_Q), most);
}

/* q, then v, closed with what was set as it was set; q, v: as they were set. */
static status keep(instance *s, const double *q, const double *v)
{
    double wanted[N_Q + 1];
    int k;
    for (k = 0; k < N_Q; k++) wanted[k] = s->now.set_q[k] ? q[k] : s->now.m[AT_Q + k];
    if (!close_keeping(s, AT_Q, N_Q, wanted, s->now.set_q)) return refuse_change(s, AT_Q, N_Q, wanted, s->now.set_q);
    if (!close_keeping(s, AT_V, N_V, v, s->now.set_v)) return refuse_change(s, AT_V, N_V, v, s->now.set_v);
    return OK;
}

/* The start as it was set, brought to the closed loops, or refused. */
static status settle(instance *s)
{
    double *m = s->now.m, left = 0.0, q[N_Q + 1], v[N_V + 1], p[N_P + 1];
    const int same_q = as_exported(s, AT_Q, N_Q), same_p = as_exported(s, AT_P, N_P);
    status found;
    int stage, k, bits = 0, stages = same_q && !same_p ? STAGES : 1;
    if (same_q && same_p && as_exported(s, AT_V, N_V)) return OK;
    if (FIXED_START) return say(s, ERROR, "the start cannot be changed: contacts or events of this model begin with it");
    memcpy(q, m + AT_Q, N_Q * sizeof(double));
    memcpy(v, m + AT_V, N_V * sizeof(double));
    memcpy(p, m + AT_P, N_P * sizeof(double));
    for (k = 0; k < N_QUATERNIONS; k++) {
        const double *x = q + quaternions[k];
        const double length = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + x[3] * x[3]);
        if (!(fabs(length - 1.0) <= UNIT))
            return say(s, ERROR, "the start: the quaternion from %s on has the length %g; must be 1",
                       name_of(POSITION, quaternions[k]), length);
    }
    if (stages == 1) bits = model_closing(m);
    if (bits) return say(s, ERROR, "the start: %s", reason(bits));
    if (stages == 1 && m[AT_CLOSING + N_Q + N_V] > FAR_OPEN + OPEN_AT_START)
        return say(s, ERROR, "the start: a loop is open by %.3g (rad, or of its length), more than %g. Set all q.* of the "
                   "loop to a closed position", m[AT_CLOSING + N_Q + N_V], FAR_OPEN);
    for (stage = 1; stage <= stages && !bits; stage++) {
        for (k = 0; k < N_P; k++) {
            const double from = at_start(AT_P + k);
            m[AT_P + k] = stage == stages ? p[k] : from + (p[k] - from) * (double)stage / (double)stages;
        }
        memcpy(m + AT_V, v, N_V * sizeof(double));
        bits = project(s, &left);
        if (!(left <= ENOUGH + 2.0 * OPEN_AT_START)) bits = 1; /* a later stage might close elsewhere */
    }
    memcpy(m + AT_P, p, N_P * sizeof(double));
    if (stages == 1) memcpy(m + AT_Q, q, N_Q * sizeof(double)); /* what was not set begins where it was */
    if (bits || !all_finite(m + AT_Q, N_Q))
        found = say(s, ERROR, "the start: the loops cannot be closed from here with these parameters. Set all q.* to a "
                    "closed position");
    else
        found = keep(s, q, v);
    if (found == OK) return report_change(s, q, v);
    memcpy(m + AT_Q, q, N_Q * sizeof(double));
    memcpy(m + AT_V, v, N_V * sizeof(double));
    return found;
}
