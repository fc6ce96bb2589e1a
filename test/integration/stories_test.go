package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/model"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// The model tells what happens where a safeguard is missing. Here none is, and each
// story ends at its wrong step, which is refused for the reason that the model says.
// agent-sandbox sees nothing meanwhile: the story's people write all that is written.
func TestStoriesOnARealAPIServer(t *testing.T) {
	w := faultsIn(t, sharedWorld(t), release)
	variants := model.Variants()
	g := newGate(len(variants))
	var all sync.WaitGroup
	for _, v := range variants {
		prepared := sync.OnceFunc(g.prepared.Done)
		all.Go(func() {
			// Also a story that cannot be prepared holds nobody up.
			defer prepared()
			t.Run(v.Name, func(t *testing.T) {
				p := w.player(t, v)
				prepared()
				<-g.late
				p.play()
			})
		})
	}
	g.prepared.Wait()
	s := &stage{t: t, w: w.world}
	for _, r := range []schema.GroupResource{
		upstream.SandboxTemplates, upstream.SandboxWarmPools, upstream.SandboxClaims, upstream.Sandboxes, pods,
	} {
		s.hold(r)
	}
	close(g.late)
	all.Wait()
}

// player plays one story in a namespace of its own.
type player struct {
	*row
	story model.Story
	// template is as it was before anybody deleted it, and switched the one that the pool
	// refers to since somebody had it do so.
	template, switched *object
	// now are the claims of a name, and former those that were deleted.
	now, former map[string]*object
	// admitted are the versions of members that writes on their way were admitted onto.
	admitted []*object
}

// held keeps what is deleted where it is.
const (
	held    = `{"metadata":{"finalizers":["test.freshbind.dev/hold"]}}`
	letGo   = `{"metadata":{"finalizers":null}}`
	another = "another-pod"
)

func (w *faultWorld) player(t *testing.T, v model.Variant) *player {
	t.Helper()
	result, err := v.Explore(v.Bounds())
	if err != nil {
		t.Fatal(err)
	}
	p := &player{row: w.row(t, v.Name, faultCase{}), story: result.Story, now: map[string]*object{}, former: map[string]*object{}}
	t.Logf("%s", p.story)
	var place func(*row, *builders.Template)
	if v.Person == model.NodeLeaving {
		place = (*row).placeMembers
	}
	p.create(p.pool, place)
	p.members = p.filled(p.pool, p.pool.Image)
	p.template = p.row.template(p.pool.Template)
	p.onlyJudged()
	return p
}

// onlyJudged: of Freshbind nothing but its verdicts is in the story. It deletes no member
// that somebody spoils, and repairs nothing.
func (p *player) onlyJudged() {
	p.t.Helper()
	p.annotate(p.pool, settings.PausedKey, "true", settings.RepairKey, "false")
	if slices.ContainsFunc(p.story.Steps, func(s model.NamedStep) bool { return s.Act == model.Interferes }) {
		p.forbidDeletes(p.members[0].GetName())
	}
}

func (p *player) play() {
	p.t.Helper()
	for _, name := range []string{"c1", "c2"} {
		p.createClaim(p.pool, name)
	}
	for i, step := range p.story.Steps {
		wrong := i == p.story.Wrong
		err := p.do(step, wrong)
		if wrong {
			p.isWrong(err)
			p.nothingFound()
			return
		}
		if err != nil {
			p.t.Fatalf("step %d, %s: %v", i+1, step.Text, err)
		}
	}
	p.t.Error("the story has no wrong step")
}

func (p *player) createClaim(pool scenario.Pool, name string) {
	p.t.Helper()
	p.must(p.CreateClaims(p.t.Context(), pool, name))
	p.now[name] = p.get(upstream.SandboxClaims, name)
	// Nobody is to serve it, when the controllers see again.
	p.t.Cleanup(func() {
		err := p.Resource(upstream.SandboxClaims).Delete(p.ending(), name, metav1.DeleteOptions{})
		if err != nil && !isNotFound(err) {
			p.t.Errorf("delete claim %s: %v", name, err)
		}
	})
}

// modified is in what the API server says of a write, and of a delete, that names another
// version than the one that is stored.
const modified = "been modified"

// isWrong checks that the step was refused for what the model says.
func (p *player) isWrong(err error) {
	p.t.Helper()
	switch {
	case p.story.Reason == "" && (!apierrors.IsConflict(err) || !strings.Contains(err.Error(), modified)):
		p.t.Errorf("the wrong step was answered: %v; want a conflict of versions", err)
	case p.story.Reason != "" && (err == nil || !strings.Contains(err.Error(), string(p.story.Reason))):
		p.t.Errorf("the wrong step was answered: %v; want a refusal for %s", err, p.story.Reason)
	}
}

// nothingFound: the judge, who knows no story, finds nothing wrong.
func (p *player) nothingFound() {
	p.t.Helper()
	_, findings := p.stage.judged()
	for _, b := range findings {
		if b.Class != checker.Raced {
			p.t.Errorf("not fresh: %s", b)
		}
	}
}

// member is the one of that name, as it was before the story, or at its birth.
func (p *player) member(step model.NamedStep) *object {
	p.t.Helper()
	var i int
	if _, err := fmt.Sscanf(step.Member, "m%d", &i); err != nil || i < 1 || i > len(p.members) {
		p.t.Fatalf("%s: there was no member %q", step.Text, step.Member)
	}
	return p.members[i-1]
}

func (p *player) claimOf(step model.NamedStep) *object {
	if step.FormerUID() {
		return p.former[step.Claim]
	}
	return p.now[step.Claim]
}

// rendered is the template as of the step's revision.
func (p *player) rendered(step model.NamedStep) *object {
	template := p.template
	if p.switched != nil && !step.FormerTemplate() {
		template = p.switched
	}
	return builders.TemplateFrom(template).Image(imageOf(step)).Obj()
}

func imageOf(step model.NamedStep) string { return fmt.Sprintf("sandbox:v%d", step.Revision()) }

// do makes the step's write. A write is admitted and stored in one request: it is made
// when it is admitted, unless the story ends where it is stored.
func (p *player) do(step model.NamedStep, wrong bool) error {
	p.t.Helper()
	last := p.story.Steps[p.story.Wrong]
	switch step.Act {
	case model.Edits:
		p.image(p.pool, imageOf(step))
	case model.Born:
		return p.born(step)
	case model.Chooses:
		return p.choose(p.now[step.Claim], p.member(step).GetName())
	case model.Admitted:
		if last.Act != model.Stored {
			return p.write(step)
		}
		p.admitted = append(p.admitted, p.live(p.member(step)))
	case model.Stored:
		if last.Act == model.Stored {
			return p.store(step, wrong)
		}
	case model.NamedInStatus:
		patch := fmt.Sprintf(`{"status":{"sandbox":{"name":%q}}}`, p.member(step).GetName())
		_, err := p.Resource(upstream.SandboxClaims).Patch(p.t.Context(), step.Claim, mergePatch, []byte(patch), patchOptions, "status")
		return err
	case model.DeletedByPool:
		return p.deleteByName(p.member(step), wrong)
	case model.DeletedByUs:
		m := p.member(step)
		uid, version := m.GetUID(), m.GetResourceVersion()
		return p.memberClient().Delete(p.t.Context(), m.GetName(),
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	case model.Interferes:
		p.interfere(step)
	default:
		p.t.Fatalf("nobody can play: %s", step.Text)
	}
	return nil
}

func (p *player) choose(claim *object, member string) error {
	return p.judged(func() error {
		now, err := p.Resource(upstream.SandboxClaims).Get(p.t.Context(), claim.GetName(), getOptions)
		if err != nil {
			return err
		}
		_, err = p.as(upstream.SandboxClaims).Update(p.t.Context(), builders.ClaimFrom(now).Names(member).Obj(), updateOptions)
		return err
	})
}

// store writes onto the version that the first write on its way was admitted onto. When
// somebody was faster who is not in the story, all that are on their way are admitted
// again; but not the wrong one, which is to find another version.
func (p *player) store(step model.NamedStep, wrong bool) error {
	p.t.Helper()
	put := func() error {
		bound := builders.Bound(p.admitted[0], p.claimOf(step), p.template).Obj()
		_, err := p.as(upstream.Sandboxes).Update(p.t.Context(), bound, updateOptions)
		if apierrors.IsConflict(err) && !wrong {
			now := p.live(p.member(step))
			for i := range p.admitted {
				p.admitted[i] = now
			}
		}
		return err
	}
	if wrong {
		// A conflict of versions is what it is to find, so only what came too late is tried again.
		var answer error
		p.eventually("an answer in time", func(context.Context) (string, bool) {
			answer = put()
			return fmt.Sprint(answer), !tooLate(answer)
		})
		return answer
	}
	err := p.judged(put)
	p.admitted = p.admitted[1:]
	return err
}

// deleteByName is the pool controller's. The hook that refuses it fails open.
func (p *player) deleteByName(member *object, wrong bool) error {
	p.t.Helper()
	before := p.w.unprotected(p.t)
	err := p.as(upstream.Sandboxes).Delete(p.t.Context(), member.GetName(), metav1.DeleteOptions{})
	if err == nil && wrong && p.w.unprotected(p.t) > before {
		p.t.Skip("the sandbox was deleted because Freshbind did not answer in time, as failurePolicy Ignore has it")
	}
	return err
}

// born is a member whose Pod is not made, as nobody sees it.
func (p *player) born(step model.NamedStep) error {
	p.t.Helper()
	if step.Interference != model.PodNotYet {
		p.t.Fatalf("nobody can play: %s", step.Text)
	}
	made := builders.MakeMember(p.get(upstream.SandboxWarmPools, p.pool.Name), p.rendered(step)).UID("").Obj()
	return p.judged(func() error {
		member, err := p.as(upstream.Sandboxes).Create(p.t.Context(), made, createOptions)
		if err == nil {
			p.members = append(p.members, member)
		}
		return err
	})
}

// write is one that looks like a bind or a cold start.
func (p *player) write(step model.NamedStep) error {
	p.t.Helper()
	claim := p.claimOf(step)
	cold := func() *builders.Sandbox { return builders.MakeColdStart(claim, p.rendered(step)).UID("") }
	onto := func(change func(*builders.Sandbox)) error {
		return p.patchTo(p.member(step), func(now *object) *object {
			bound := builders.Bound(now, claim, p.template)
			change(bound)
			return bound.Obj()
		})
	}
	switch step.Write() {
	case model.Bind:
		return onto(func(*builders.Sandbox) {})
	case model.BindAndEdit:
		return onto(func(b *builders.Sandbox) { b.Image("sandbox:v2") })
	case model.BindAndSwapPod:
		return onto(func(b *builders.Sandbox) { b.PodName(another) })
	case model.BindToTwo:
		return onto(func(b *builders.Sandbox) { b.Owners(p.beside(claim), builders.ControllerRef(claim)) })
	case model.ColdForTwo:
		return p.createSandbox(cold().Owners(p.beside(claim), builders.ControllerRef(claim)))
	case model.Foreign:
		nobody := builders.ControllerRef(claim)
		nobody.APIVersion, nobody.Kind = "example.com/v1", "Nobody"
		return p.createSandbox(cold().Name("nobodys").Owners(nobody))
	}
	return p.createSandbox(cold())
}

// beside is the other claim as an owner that is no controller: there can be one only.
func (p *player) beside(claim *object) metav1.OwnerReference {
	other := p.now["c1"]
	if claim.GetName() == "c1" {
		other = p.now["c2"]
	}
	ref := builders.ControllerRef(other)
	ref.Controller = nil
	return ref
}

func (p *player) createSandbox(b *builders.Sandbox) error {
	return p.judged(func() error {
		_, err := p.as(upstream.Sandboxes).Create(p.t.Context(), b.Obj(), createOptions)
		return err
	})
}
