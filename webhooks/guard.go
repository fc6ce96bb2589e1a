package webhooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/freshbind/freshbind/internal/fair"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/jsonobject"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// Platform is what the guard needs to know of a warm-pool system.
type Platform interface {
	// Classify says what a write is; false when it is not to be judged.
	Classify(op admissionv1.Operation, old, obj *unstructured.Unstructured) (platform.Write, bool)
	// Snapshot reads what the verdict depends on. An error says that it could
	// not be decided.
	Snapshot(ctx context.Context, w platform.Write) (platform.Facts, error)
	// Question names all that the verdict depends on in the write itself.
	Question(w platform.Write) platform.Question
	Answers
}

// Answers are the statuses after which a platform's controllers do the right thing.
type Answers interface {
	// Answer is that of a denial.
	Answer(op freshness.Operation, f freshness.Fault) (code int32, reason metav1.StatusReason)
	// Undecided is that of a write which could not be judged; "" for no reason.
	Undecided(op freshness.Operation) (code int32, reason metav1.StatusReason)
}

// Observer takes hints on what an answer leaves behind. The calls must return
// at once; nothing of what follows from them happens while a write is admitted.
type Observer interface {
	// Refused: a bind of the member, a Sandbox or a bare Pod, was refused, and
	// whose fault that was.
	Refused(member *unstructured.Unstructured, fault freshness.Fault)
	// TryAgain: a write for the claim could not be decided, or its stale cold start was
	// not seen by the webhook that repairs those. The next try may succeed.
	TryAgain(namespace, claim string)
	// Denied: a claim was denied this sandbox, or would have been in mode audit.
	Denied(d Denial)
	// Repaired: the claim's cold start, rewritten from one revision to the other,
	// was let through.
	Repaired(w platform.Write, note string)
}

// Denial is what the people who own a claim and a pool have to know, because
// the claim's own status tells something else.
type Denial struct {
	platform.Write
	freshness.Verdict
	// Pool is the pool as stored; nil when it does not exist.
	Pool *freshness.Pool
	Mode settings.Mode
}

// Guard judges binds, cold starts and births.
type Guard struct {
	Platform Platform
	Modes    *Modes
	Metrics  *Metrics
	Observer Observer
	// RecentBinds and Retries are shared by all guards; nil for none.
	RecentBinds *RecentBinds
	Retries     *RetryLimiter
	// KnownRefusals knows of cold starts that are refused; nil for none.
	KnownRefusals *RefusalCache
	// Existing is told of sandboxes that are let be created for claims; nil for nobody.
	Existing *ExistingNames
	// PoolSkipped is told of a cold start for a claim that any member of the pool
	// would have done for; nil when nobody wants to know.
	PoolSkipped func(namespace, pool string)
	// Released is told of a bare Pod that was allowed to leave its pool; nil when
	// nobody wants to know.
	Released func(pod *unstructured.Unstructured)
	// Allowed is told of a claim that is let have a sandbox, which the API server may not
	// hear; nil when nobody wants to know.
	Allowed func(namespace, claim string, uid types.UID)
	// ReturnRefused is told of a used Sandbox that its pool does not get back; nil when
	// nobody wants to know.
	ReturnRefused func(sandbox *unstructured.Unstructured)
	Clock         clock.PassiveClock
	// Turns shares the CPU that verdicts take between namespaces; nil for no bound.
	Turns *fair.Turns
	// Timeout bounds one verdict. It has to be shorter than the webhook's own,
	// or the answer comes when nobody listens any more.
	Timeout time.Duration
	// FailOpen: what cannot be decided is allowed. It has to be what the
	// webhook's failurePolicy says, which covers no answer that is given.
	FailOpen bool
}

var _ admission.Handler = (*Guard)(nil)

// outcome is a verdict, or that there is none, in a mode.
type outcome struct {
	freshness.Verdict
	pool *freshness.Pool
	// claim is the name that the claim is stored by, where the write does not tell.
	claim string
	// taken is the bare Pod that a Sandbox, about to be created, names.
	taken *unstructured.Unstructured
	// alwaysCold: no member would do for the claim.
	alwaysCold bool
	// repaired says from which revision to which it was rewritten; "" when it was
	// not.
	repaired string
	// turnAway: the claim is to give this member up.
	turnAway bool
	// byPerson: no service account wrote it.
	byPerson bool
	mode     settings.Mode
	err      error
}

func (o outcome) verdict() string {
	switch {
	case o.err != nil:
		return "error"
	case !o.Allowed:
		return "deny"
	case o.Tolerated:
		return "tolerate"
	}
	return "allow"
}

func (o outcome) reason() string {
	if o.err != nil {
		return "Undecided"
	}
	return string(o.Reason)
}

// Handle answers one request. It has no side effects but metrics, logs and the
// hints to Observer, none of them for a dry run.
func (g *Guard) Handle(ctx context.Context, req admission.Request) admission.Response {
	old, obj, err := decode(req)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	w, ours := g.Platform.Classify(req.Operation, old, obj)
	if !ours {
		return admission.Allowed("")
	}
	start := g.Clock.Now()
	w.MayHold = g.RecentBinds.hints(ctx, w)
	o := g.judge(ctx, req.Namespace, w)
	if (w.Operation == freshness.ColdStart || w.Operation == freshness.Birth) && o.mode == settings.Enforce {
		if note := w.New.GetAnnotations()[settings.RepairedKey]; platform.IsRepaired(note) {
			o.repaired = note
		}
	}
	dryRun := req.DryRun != nil && *req.DryRun
	if _, asked := w.New.GetAnnotations()[settings.SelfTestKey]; dryRun && asked {
		o.mode = settings.Enforce
	}
	if !dryRun {
		o.turnAway = o.err == nil && g.Retries.exceeded(w, o.Verdict)
		user := req.UserInfo.Username
		o.byPerson = user != "" && !strings.HasPrefix(user, "system:serviceaccount:")
		g.Metrics.observe(w, o, g.Clock.Since(start))
		g.hint(w, o)
	}
	traceOutcome(ctx, w, o)
	log := logf.FromContext(ctx).V(2)
	if o.err != nil {
		log = log.WithValues("why", o.err.Error())
	}
	log.Info("Judged write", "operation", w.Operation, "sandbox", w.Judged().GetName(), "claim", w.Claim.Name,
		"verdict", o.verdict(), "reason", o.reason(), "mode", o.mode, "found", o.Found, "expected", o.Expected,
		"detail", o.Detail)
	return g.respond(w, o)
}

func (g *Guard) judge(ctx context.Context, namespace string, w platform.Write) outcome {
	if w.Operation == freshness.ColdStart {
		// It was predicted in mode enforce only.
		if v, refused := g.KnownRefusals.take(g.Platform.Question(w)); refused {
			return outcome{mode: settings.Enforce, Verdict: v}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	facts, err := g.Platform.Snapshot(ctx, w)
	var v freshness.Verdict
	asked := facts.Enforcement
	if err != nil {
		asked = g.Modes.mayBeAsked(ctx, w.Judged())
	} else {
		v, err = g.verdict(ctx, namespace, facts.Snapshot)
	}
	mode, modeErr := g.modeFor(ctx, w, v, namespace, facts.Namespace, asked)
	err = errors.Join(err, modeErr)
	if v.Allowed && settings.Mode(asked) == settings.Enforce {
		err = errors.Join(err, g.policiesHold(ctx, namespace, facts, w))
	}
	return outcome{
		mode: mode, pool: facts.Pool, claim: facts.ClaimRef.Name, taken: facts.Taken, alwaysCold: facts.AlwaysCold,
		Verdict: v, err: err,
	}
}

// modeFor needs no read for a bind of what is fresh: it passes in every mode, and the one
// that is counted is the cache's.
func (g *Guard) modeFor(ctx context.Context, w platform.Write, v freshness.Verdict, name string, namespace platform.Namespace, asked string) (settings.Mode, error) {
	if w.Operation == freshness.Bind && v.Reason == freshness.Fresh && settings.Mode(asked) != settings.Enforce {
		return g.Modes.lastKnown(ctx, name), nil
	}
	return g.Modes.in(ctx, name, namespace, asked)
}

// policiesHold reports an error while no policy holds for the sandbox that a claim is
// about to get. Where only a pool says enforce, policies know its sandboxes by a label:
// one that was made while Freshbind was away has none before the leader writes it. Who
// took the claim off such a sandbox before Freshbind has noted that it was used could
// give it to the next claim. Its controller tries again.
func (g *Guard) policiesHold(ctx context.Context, namespace string, facts platform.Facts, w platform.Write) error {
	switch w.Operation {
	case freshness.Bind, freshness.ColdStart, freshness.WarmStart:
	default:
		return nil
	}
	if settings.Mode(w.New.GetLabels()[settings.EnforcementKey]) == settings.Enforce {
		return nil
	}
	mode, err := g.Modes.in(ctx, namespace, facts.Namespace, "")
	if err != nil || mode == settings.Enforce {
		return err
	}
	return fmt.Errorf("metadata.labels[%s]: the pool says enforce, but Freshbind has not labelled sandbox %s yet, so no policy holds for it: try again",
		settings.EnforcementKey, w.New.GetName())
}

// verdict judges when it is the namespace's turn.
func (g *Guard) verdict(ctx context.Context, namespace string, s freshness.Snapshot) (freshness.Verdict, error) {
	done, err := g.Turns.Take(ctx, namespace)
	if err != nil {
		return freshness.Verdict{}, err
	}
	defer done()
	return freshness.JudgeWithin(s, revision.NewBudget(freshness.MaxWork, ctx.Err))
}

func (g *Guard) hint(w platform.Write, o outcome) {
	if mayDoBetter(w, o) {
		g.Observer.TryAgain(w.Judged().GetNamespace(), w.Claim.Name)
	}
	if o.err != nil {
		return
	}
	denied := w
	denied.Claim.Name = cmp.Or(w.Claim.Name, o.claim)
	if !o.Allowed && (denied.Claim.Name != "" || w.Operation == freshness.Release || w.Operation == freshness.Return) {
		g.Observer.Denied(Denial{Write: denied, Verdict: o.Verdict, Pool: o.pool, Mode: o.mode})
	}
	if o.Allowed || o.mode != settings.Enforce {
		g.passes(w, o)
		return
	}
	switch {
	case w.Operation == freshness.Bind, w.Operation == freshness.Release:
		g.Observer.Refused(w.Old, o.Reason.Fault())
	case w.Operation == freshness.Return && g.ReturnRefused != nil:
		g.ReturnRefused(w.Old)
	case o.taken != nil:
		g.Observer.Refused(o.taken, o.Reason.Fault())
	}
}

// mayDoBetter reports whether the claim's next try may succeed by itself.
func mayDoBetter(w platform.Write, o outcome) bool {
	return o.mode == settings.Enforce && w.Claim.Name != "" && (o.err != nil || missedRepair(w, o.Verdict))
}

// missedRepair reports whether a stale cold start went past the webhook that repairs
// those, which fails open: it names the revision of every one that it has decided on.
func missedRepair(w platform.Write, v freshness.Verdict) bool {
	return w.Operation == freshness.ColdStart && v.Reason == freshness.StaleRevision && !v.Allowed &&
		w.New.GetLabels()[settings.StampKey] == ""
}

// passes takes note of a write that is let through.
func (g *Guard) passes(w platform.Write, o outcome) {
	g.RecentBinds.note(w)
	if o.mode == settings.Enforce {
		g.Existing.note(w)
		if w.Claim.Name != "" && g.Allowed != nil {
			g.Allowed(w.Judged().GetNamespace(), w.Claim.Name, types.UID(w.Claim.UID))
		}
	}
	if o.repaired != "" && w.Claim.Name != "" {
		g.Observer.Repaired(w, o.repaired)
	}
	skipped := w.Operation == freshness.ColdStart && o.pool != nil && !o.alwaysCold
	if o.mode == settings.Enforce && skipped && g.PoolSkipped != nil {
		g.PoolSkipped(w.Judged().GetNamespace(), o.pool.Name)
	}
	// What a person takes out of a pool is theirs to look at.
	if o.mode == settings.Enforce && w.Operation == freshness.Release && !o.byPerson && g.Released != nil {
		g.Released(w.Old)
	}
}

func (g *Guard) respond(w platform.Write, o outcome) admission.Response {
	resp := admission.Allowed("")
	switch {
	case o.mode != settings.Enforce:
	case o.err != nil && g.FailOpen:
		resp = resp.WithWarnings("Freshbind could not judge this write, and let it pass: " + o.err.Error())
	case o.err != nil:
		code, reason := g.Platform.Undecided(w.Operation)
		resp = admission.Errored(code, fmt.Errorf("could not decide: %w", o.err))
		resp.Result.Reason = reason
	case !o.Allowed:
		resp = g.denied(w, o)
	case o.Reason == freshness.UnknownRevision && !o.Tolerated && w.Operation != freshness.Birth:
		resp = resp.WithWarnings("attribution is suspended in this pool, so Freshbind lets a member pass that equals no known revision: " + o.Detail)
	}
	resp.AuditAnnotations = map[string]string{
		"verdict": o.verdict(), "reason": o.reason(), "mode": string(o.mode),
		"found": o.Found, "expected": o.Expected,
	}
	return resp
}

func (g *Guard) denied(w platform.Write, o outcome) admission.Response {
	v, fault := o.Verdict, o.Reason.Fault()
	if o.turnAway {
		fault = freshness.FaultMember
	}
	code, reason := g.Platform.Answer(w.Operation, fault)
	message := fmt.Sprintf("%s: %s", v.Reason, v.Detail)
	if v.Found != v.Expected {
		message += fmt.Sprintf(" (is %s, in force is %s)", v.Found, v.Expected)
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{
		Result: &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message},
	}}
}

// decode returns the stored object, nil for a CREATE, and the one to be stored.
func decode(req admission.Request) (old, obj *unstructured.Unstructured, err error) {
	if obj, err = decodeObject(req.Object.Raw, req.Namespace); err != nil {
		return nil, nil, fmt.Errorf("decoding object: %w", err)
	}
	if req.Operation == admissionv1.Update {
		if old, err = decodeObject(req.OldObject.Raw, req.Namespace); err != nil {
			return nil, nil, fmt.Errorf("decoding oldObject: %w", err)
		}
	}
	return old, obj, nil
}

// decodeObject decodes numbers as the API machinery does. The namespace is the
// request's: an object may leave it out.
func decodeObject(raw []byte, namespace string) (*unstructured.Unstructured, error) {
	if len(raw) == 0 {
		return nil, errors.New("the request holds no object")
	}
	object, err := jsonobject.Decode(raw)
	if err != nil {
		return nil, err
	}
	if object == nil {
		return nil, errors.New("the request's object is null")
	}
	u := &unstructured.Unstructured{Object: object}
	u.SetNamespace(namespace)
	return u, nil
}
