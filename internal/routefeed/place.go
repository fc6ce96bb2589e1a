package routefeed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/freshbind/freshbind/routes"
)

const (
	// beforeEnd is how long before its end a watch gets a bookmark (apiserver,
	// storage/cacher/cache_watcher.go).
	beforeEnd = 2 * time.Second
	// grace is how much longer than it should a watch or a read may take. A dead
	// connection says nothing.
	grace = 5 * time.Second
	// marksKept bounds the questions that the watch has not caught up with.
	marksKept = 32
	// questionsPerAge is how often in MaxAge the question is asked.
	questionsPerAge = 6
)

// mark says that nothing that happened before the time has a higher version.
type mark struct {
	asked   time.Time
	version routes.Version
}

// place is one namespace, "" for all, as far as a follower follows it.
type place struct {
	*follower
	namespace string

	mu sync.Mutex
	// last is the version up to which everything was delivered.
	last  routes.Version
	marks []mark
}

func (p *place) begin(v routes.Version) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.marks = v, nil
}

func (p *place) reached() routes.Version {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// ask keeps asking up to which version anything can have happened. An answer
// below what was delivered before the question is one of a cluster that was put
// back to an earlier state.
func (p *place) ask(ctx context.Context) error {
	log := logf.FromContext(ctx).WithValues("kind", p.kind.String(), "namespace", p.namespace)
	for ctx.Err() == nil {
		before := p.reached()
		asked := p.clock.Now()
		v, err := p.head(ctx)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errRestart):
			return err
		case err != nil:
			log.V(2).Info("Cannot prove how old the view is", "reason", err.Error())
		case v < before:
			return p.outcome(routes.Restored)
		default:
			p.mark(mark{asked, v})
			// Perhaps everything up to there was delivered before the question.
			if err := p.advance(before); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-p.clock.After(p.table.MaxAge() / questionsPerAge):
		}
	}
	return ctx.Err()
}

// head reads the version of the newest state: a consistent list of one object
// that there is not, which costs the API server next to nothing.
func (p *place) head(ctx context.Context) (routes.Version, error) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	namespace := p.namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	found, err := p.resource.Namespace(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, "freshbind-asks-for-the-version").String(),
	})
	if err != nil {
		return 0, p.expired(fmt.Errorf("ask for the version of %s: %w", p.kind, err))
	}
	return routes.ParseVersion(found.GetResourceVersion())
}

func (p *place) mark(m mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.marks) == marksKept {
		p.marks = append(p.marks[:0], p.marks[1:]...)
	}
	p.marks = append(p.marks, m)
}

// advance says that everything up to v was delivered, and proves what that
// answers.
func (p *place) advance(v routes.Version) error {
	asked, ok := p.answer(v)
	if !ok {
		return nil
	}
	return p.prove(p, asked)
}

// answer returns the newest question that the delivery of v answers.
func (p *place) answer(v routes.Version) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = max(p.last, v)
	answered := 0
	for answered < len(p.marks) && p.marks[answered].version <= p.last {
		answered++
	}
	if answered == 0 {
		return time.Time{}, false
	}
	asked := p.marks[answered-1].asked
	p.marks = append(p.marks[:0], p.marks[answered:]...)
	return asked, true
}

// follow watches for as long as nothing is lost.
func (p *place) follow(ctx context.Context) error {
	log := logf.FromContext(ctx).WithValues("kind", p.kind.String(), "namespace", p.namespace)
	retry := p.retry
	for ctx.Err() == nil {
		before := p.reached()
		err := p.watchOnce(ctx)
		if errors.Is(err, errExpired) || errors.Is(err, errRestart) {
			return err
		}
		if p.reached() != before {
			retry = p.retry
		}
		if err == nil {
			continue
		}
		log.V(2).Info("Watch ended", "resourceVersion", p.reached(), "reason", err.Error())
		select {
		case <-ctx.Done():
		case <-p.clock.After(retry.Step()):
		}
	}
	return ctx.Err()
}

// length is how long a watch is to live: a bookmark ends it after a quarter of
// MaxAge, and a second at least.
func (p *place) length() time.Duration {
	return max(time.Second, (p.table.MaxAge()/4).Truncate(time.Second)) + beforeEnd
}

// watchOnce watches until the first bookmark, or the end of the watch.
func (p *place) watchOnce(ctx context.Context) error {
	length := p.length()
	ctx, cancel := context.WithTimeout(ctx, length+grace)
	defer cancel()
	seconds := int64(math.Ceil(length.Seconds()))
	w, err := p.resource.Namespace(p.namespace).Watch(ctx, metav1.ListOptions{
		LabelSelector: p.selector, ResourceVersion: fmt.Sprint(p.reached()), AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return p.expired(fmt.Errorf("watch %s: %w", p.kind, err))
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("watch %s: %w", p.kind, ctx.Err())
		case e, ok := <-w.ResultChan():
			if !ok {
				return nil
			}
			ended, err := p.take(e)
			if err != nil || ended {
				return err
			}
		}
	}
}

// take follows one event. It reports whether the watch has said all it is good
// for.
func (p *place) take(e watch.Event) (bool, error) {
	if e.Type == watch.Error {
		return true, p.expired(fmt.Errorf("watch %s: %w", p.kind, apierrors.FromObject(e.Object)))
	}
	u, ok := e.Object.(*unstructured.Unstructured)
	if !ok {
		return true, fmt.Errorf("watch %s: event %s with a %T", p.kind, e.Type, e.Object)
	}
	v, err := routes.ParseVersion(u.GetResourceVersion())
	if err != nil {
		return true, fmt.Errorf("watch %s: %w", p.kind, err)
	}
	outcome := routes.Applied
	switch e.Type {
	case watch.Bookmark:
	case watch.Deleted:
		outcome, err = p.events.deleted(u)
	default:
		outcome, err = p.events.changed(u)
	}
	if err != nil {
		return true, err
	}
	if e.Type != watch.Bookmark {
		err = p.outcome(outcome)
	}
	if err != nil {
		return true, err
	}
	return e.Type == watch.Bookmark, p.advance(v)
}
