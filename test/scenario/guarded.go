package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/exposition"
	"github.com/freshbind/freshbind/test/upstream"
)

// ErrUnreachable says that the API server asked the webhook and got no answer.
var ErrUnreachable = errors.New("the API server gets no answer from the webhook")

// WaitGuarded waits until the API server asks Freshbind about this namespace,
// which has to be one where Freshbind denies. It sends nothing but dry runs.
// The error is ErrUnreachable when the webhook is in force and out of reach.
func (n *Namespace) WaitGuarded(ctx context.Context, within time.Duration) error {
	var last error
	err := until(ctx, within, "webhooks in force in "+n.Name, func(ctx context.Context) (string, bool, error) {
		if last = n.askGuard(ctx); last == nil {
			return "a write that Freshbind denies is not denied", false, nil
		}
		if apierrors.IsInvalid(last) {
			return "", false, fmt.Errorf("try a write that Freshbind denies: %w", last)
		}
		return last.Error(), strings.Contains(last.Error(), string(freshness.ClaimGone)), nil
	})
	if TooLate(err) && apierrors.IsInternalError(last) {
		return fmt.Errorf("%w: %w", ErrUnreachable, last)
	}
	return err
}

// askGuard tries, as a dry run, what Freshbind always denies: a cold start for
// a claim that does not exist.
func (n *Namespace) askGuard(ctx context.Context) error {
	p := Pool{Name: "freshbind-probe", Template: "freshbind-probe"}
	template := builders.MakeTemplate(n.Name, p.Template).APIVersion(n.Version).Obj()
	sandbox := builders.MakeColdStart(n.Claim(p, p.Name), template).Obj()
	_, err := n.Resource(upstream.Sandboxes).Create(ctx, sandbox, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// Refused counts the writes that Freshbind denied. A bind of a bare Pod (v0.1
// and v0.2) is two writes, either of which can be denied, and counts as Binds.
// Returns are used members that a pool was to have again. Repaired are cold starts that
// were rewritten instead.
type Refused struct{ Binds, ColdStarts, Births, Returns, Repaired int }

// Minus is what was denied since earlier.
func (r Refused) Minus(earlier Refused) Refused {
	return Refused{
		r.Binds - earlier.Binds, r.ColdStarts - earlier.ColdStarts, r.Births - earlier.Births, r.Returns - earlier.Returns, r.Repaired - earlier.Repaired,
	}
}

// Plus is what was denied either time.
func (r Refused) Plus(o Refused) Refused {
	return Refused{r.Binds + o.Binds, r.ColdStarts + o.ColdStarts, r.Births + o.Births, r.Returns + o.Returns, r.Repaired + o.Repaired}
}

// ParseRefused reads from Freshbind's metrics, in Prometheus' text format, what
// was denied in mode enforce, and repaired.
func ParseRefused(text string) (Refused, error) {
	metrics, err := exposition.Parse(text)
	if err != nil {
		return Refused{}, err
	}
	r := Refused{Repaired: int(metrics.Sum("freshbind_repairs_total", `operation="coldstart"`, `result="admitted"`))}
	for _, s := range metrics["freshbind_bind_verdicts_total"] {
		if !s.Has(`verdict="deny"`, `mode="enforce"`) {
			continue
		}
		switch op := s.Labels["operation"]; freshness.Operation(op) {
		case freshness.Bind, freshness.Release, freshness.WarmStart:
			r.Binds += int(s.Value)
		case freshness.ColdStart:
			r.ColdStarts += int(s.Value)
		case freshness.Birth:
			r.Births += int(s.Value)
		case freshness.Return:
			r.Returns += int(s.Value)
		default:
			return Refused{}, fmt.Errorf("read freshbind_bind_verdicts_total: operation %q is not known", op)
		}
	}
	return r, nil
}
