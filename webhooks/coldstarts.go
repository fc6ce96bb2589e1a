package webhooks

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/freshbind/freshbind/internal/bounded"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// coldCause says why a claim started cold. The set is closed.
type coldCause string

const (
	// claimRequires: no member would do for it, whatever its pool has.
	claimRequires coldCause = "ClaimRequires"
	// memberRefused: this process refused it a member before.
	memberRefused coldCause = "Refused"
	// poolEmpty: none of the above, so its controller found nothing to take.
	poolEmpty coldCause = "PoolEmpty"
)

// What became of what was repaired. The set is closed.
const (
	repairAdmitted = "admitted"
	repairRefused  = "refused"
)

// refusedBytes bounds how many claims are remembered, twice, in bytes: a UID in
// an owner reference is as long as who writes it likes.
const refusedBytes = 2 << 20

// coldStarts counts cold starts by their cause, from what the verdict read and
// what this process itself has refused: to ask who was refused elsewhere would
// cost every cold start a LIST.
type coldStarts struct {
	total   *prometheus.CounterVec
	repairs *prometheus.CounterVec
	refused *bounded.Cache[string, struct{}]
	// counted are the claims that count already: a controller whose cache is late
	// creates what is there, and is told so only after admission.
	counted *bounded.Cache[string, struct{}]
}

func newColdStarts(reg prometheus.Registerer) *coldStarts {
	c := &coldStarts{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "freshbind_cold_starts_total",
			Help: "Claims for which this process let a sandbox of their own be created, each once. " +
				"cause: ClaimRequires (the claim sets env or volumeClaimTemplates, or asks for no pool), " +
				"Refused (in mode enforce this process refused the claim a member before; after a refusal by another replica, " +
				"or one that named no claim, as those of agent-sandbox v0.1 do, the cause is PoolEmpty) " +
				"or PoolEmpty (anything else: its controller found no member to take).",
		}, []string{"cause"}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "freshbind_repairs_total",
			Help: "Sandboxes that were rendered from an older revision and rewritten to the one in force. operation: coldstart or birth. " +
				"result: admitted (of cold starts each claim once) or refused (something else was wrong with the outcome).",
		}, []string{"operation", "result"}),
		refused: bounded.NewCache[string, struct{}](refusedBytes),
		counted: bounded.NewCache[string, struct{}](refusedBytes),
	}
	for _, cause := range []coldCause{claimRequires, memberRefused, poolEmpty} {
		c.total.WithLabelValues(string(cause))
	}
	for _, op := range []freshness.Operation{freshness.ColdStart, freshness.Birth} {
		for _, result := range []string{repairAdmitted, repairRefused} {
			c.repairs.WithLabelValues(string(op), result)
		}
	}
	reg.MustRegister(c.total, c.repairs)
	return c
}

// observe takes note of one outcome.
func (c *coldStarts) observe(w platform.Write, o outcome) {
	if o.err != nil {
		return
	}
	passes := o.Allowed || o.mode != settings.Enforce
	switch w.Operation {
	case freshness.Bind, freshness.Release:
		switch {
		case w.Claim.UID == "":
		case passes:
			c.refused.Remove(w.Claim.UID)
		default:
			c.refused.Add(w.Claim.UID, struct{}{}, len(w.Claim.UID))
		}
	case freshness.ColdStart:
		if !passes {
			c.repaired(w, o, repairRefused)
		}
		if _, again := c.counted.Get(w.Claim.UID); passes && !again {
			c.counted.Add(w.Claim.UID, struct{}{}, len(w.Claim.UID))
			c.total.WithLabelValues(string(c.causeOf(w.Claim.UID, o))).Inc()
			c.repaired(w, o, repairAdmitted)
		}
	case freshness.Birth:
		result := repairAdmitted
		if !passes {
			result = repairRefused
		}
		c.repaired(w, o, result)
	}
}

func (c *coldStarts) repaired(w platform.Write, o outcome, result string) {
	if o.repaired != "" {
		c.repairs.WithLabelValues(string(w.Operation), result).Inc()
	}
}

func (c *coldStarts) causeOf(claim string, o outcome) coldCause {
	if o.alwaysCold {
		return claimRequires
	}
	if _, ok := c.refused.Get(claim); ok {
		return memberRefused
	}
	return poolEmpty
}
