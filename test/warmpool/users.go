package warmpool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/test/fakekruise"
	"github.com/freshbind/freshbind/test/scenario"
)

const (
	// within bounds every wait; nothing here should come near it.
	within = 10 * time.Minute
	// askedAgain bounds for how long a probe asks for a member that was refused because nobody
	// could decide, until Freshbind offers it again.
	askedAgain = 5 * time.Minute
	// forever is longer than any test.
	forever = 24 * time.Hour
	// askAgain is after how long a user of E2B asks again who got an error.
	askAgain = time.Second
)

// e2bUser is a user of E2B, and what they have.
type e2bUser struct {
	sandbox *unstructured.Unstructured
	served  bool
	// gone: they want nothing any more.
	gone bool
	err  error
}

// byE2B: this claim is a user's of E2B.
func byE2B(name string) bool { return strings.ContainsAny(name[len(name)-1:], "02468") }

// leaves: this user gives back what they got as soon as they have it.
func leaves(name string) bool { return strings.ContainsAny(name[len(name)-1:], "26") }

// visit is a user of E2B, who asks until they get something, and may leave then.
func (p *SetPool) visit(ctx context.Context, name string) {
	for {
		got, err := p.server.Load().Create(ctx, p.request("user-"+name))
		if err == nil && p.came(name, got.Sandbox) {
			p.Leave(ctx, got.Sandbox)
		}
		if err == nil || p.failed(name, err) || scenario.Pause(ctx, askAgain) != nil {
			return
		}
	}
}

// came notes what a user got, and reports whether they leave.
func (p *SetPool) came(name string, sandbox *unstructured.Unstructured) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.users[name]
	u.served = true
	if u.gone || leaves(name) {
		return true
	}
	u.sandbox = sandbox
	return false
}

// failed notes an error, and reports whether its user asks no more.
func (p *SetPool) failed(name string, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users[name].err = err
	return p.users[name].gone
}

// Leave has the E2B server end a sandbox, or give it back.
func (p *SetPool) Leave(ctx context.Context, sandbox *unstructured.Unstructured) {
	for p.server.Load().Delete(ctx, sandbox) != nil && scenario.Pause(ctx, askAgain) == nil {
	}
}

func (p *SetPool) dropUser(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.users[name]
	if u == nil {
		return
	}
	if u.gone = true; u.sandbox != nil {
		p.beside(func(ctx context.Context) { p.Leave(ctx, u.sandbox) })
	}
}

func (p *SetPool) takeByE2B(ctx context.Context, names []string) (cold int, err error) {
	var group errgroup.Group
	created := make([]bool, len(names))
	for i, name := range names {
		group.Go(func() error {
			got, err := p.Ask(ctx, name)
			created[i] = got.Created
			return err
		})
	}
	err = group.Wait()
	for _, is := range created {
		if is {
			cold++
		}
	}
	return cold, err
}

// Ask is a user of E2B who asks until they get something.
func (p *SetPool) Ask(ctx context.Context, user string) (got fakekruise.Result, err error) {
	var last error
	err = scenario.Poll(ctx, within, func(ctx context.Context) (bool, error) {
		got, last = p.server.Load().Create(ctx, p.request(user))
		return last == nil, nil
	})
	if err != nil {
		return got, fmt.Errorf("a sandbox of %s for %s: %w", p.in, user, errors.Join(err, last))
	}
	return got, nil
}
