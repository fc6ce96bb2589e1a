package cli

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// MemberStory is why a member can be claimed, or cannot.
type MemberStory struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	UID       string        `json:"uid"`
	Created   metav1.Time   `json:"created"`
	Pool      string        `json:"pool,omitempty"`
	Template  string        `json:"template,omitempty"`
	Mode      settings.Mode `json:"mode"`
	// Claimable: ready, shown to claims, and a bind would be let through.
	Claimable bool `json:"claimable"`
	// Allowed is the verdict, Tolerated that the pool chose so.
	Allowed   bool             `json:"allowed"`
	Tolerated bool             `json:"tolerated,omitempty"`
	Reason    freshness.Reason `json:"reason"`
	Detail    string           `json:"detail,omitempty"`
	Runs      string           `json:"runs,omitempty"`
	InForce   string           `json:"inForce,omitempty"`
	Ready     metav1.Time      `json:"ready,omitzero"`
	Hidden    bool             `json:"hidden"`
	// NodeUnread: its node may not be read by whoever asks, and was not judged.
	NodeUnread bool `json:"nodeUnread,omitempty"`

	numbers map[string]int64
}

// ExplainMember judges a member as a bind would be, from what is stored now.
func (c *Cluster) ExplainMember(ctx context.Context, namespace, name string) (*MemberStory, error) {
	sandbox, err := c.Get(ctx, c.Objects.Kinds().Member.GroupResource(), namespace, name)
	if err != nil {
		return nil, err
	}
	p, reader := c.live()
	facts, err := p.Snapshot(ctx, platform.Write{Operation: freshness.Idle, New: sandbox})
	if err != nil {
		return nil, fmt.Errorf("judging member %s: %w", name, err)
	}
	budget := revision.NewBudget(freshness.MaxWork, ctx.Err)
	v, err := freshness.JudgeWithin(facts.Snapshot, budget)
	if err != nil {
		return nil, fmt.Errorf("judging member %s: %w", name, err)
	}
	runs, err := freshness.RevisionWithin(facts.Snapshot, budget)
	if err != nil {
		return nil, fmt.Errorf("naming what member %s runs: %w", name, err)
	}
	is := c.Objects.DescribeMember(sandbox)
	m := &MemberStory{
		Namespace: namespace, Name: name, UID: string(sandbox.GetUID()), Created: sandbox.GetCreationTimestamp(),
		Allowed: v.Allowed, Tolerated: v.Tolerated, Reason: v.Reason, Detail: v.Detail,
		Runs: runs, Ready: metav1.NewTime(is.ReadySince), Hidden: !is.Shown,
		NodeUnread: reader.noNode.Load(),
	}
	if v.Found != "" {
		// What runs is the Pod, whatever its Sandbox says.
		m.Runs = v.Found
	}
	if facts.Pool != nil {
		m.Pool = facts.Pool.Name
	}
	if facts.Template != nil {
		m.Template, m.InForce = facts.Template.Name, facts.Template.Hash
	}
	if err := c.describeMode(m, facts, reader); err != nil {
		return nil, err
	}
	m.Claimable = !is.ReadySince.IsZero() && !m.Hidden && (m.Allowed || m.Mode == settings.Audit && m.inPool())
	return m, c.describeRevisions(ctx, m)
}

// inPool: in mode audit nothing but the platform itself says whose it is.
func (m *MemberStory) inPool() bool {
	return m.Reason != freshness.MemberClaimed && m.Reason != freshness.NotAMember && m.Reason != freshness.MemberTerminating
}

func (c *Cluster) describeMode(m *MemberStory, facts platform.Facts, reader *kindReader) error {
	labels, err := facts.Namespace.Labels()
	if err != nil {
		return err
	}
	read := namespaces{m.Namespace: labels}
	if reader.noNamespace.Load() {
		read = nil
	}
	m.Mode = read.mode(c.Defaults, m.Namespace, facts.Enforcement)
	return nil
}

func (c *Cluster) describeRevisions(ctx context.Context, m *MemberStory) error {
	if m.Template == "" {
		return nil
	}
	s, err := c.Load(ctx, m.Namespace)
	if err != nil {
		return err
	}
	template, err := c.templateFor(ctx, m.Namespace, m.Pool, m.Template)
	if err != nil {
		return err
	}
	m.numbers = numbersFor(c.Objects, s, template, m.InForce)
	return nil
}

// Text tells the story.
func (m *MemberStory) Text(colour bool) string {
	verdict := Cell{"CLAIMABLE", Good}
	if !m.Claimable {
		verdict = Cell{"NOT CLAIMABLE", Bad}
	}
	head := fmt.Sprintf("Member %s of pool %s (uid %s, created %s): ", m.Name, orDash(m.Pool), m.UID, clock(m.Created.Time))
	var b strings.Builder
	fmt.Fprintf(&b, ", %s\n", m.Reason)
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s %s\n", label, OneLine(fmt.Sprintf(format, args...)))
	}
	if m.Detail != "" {
		line("why", "%s", m.Detail)
	}
	if m.Reason == freshness.UnknownRevision {
		line("runs", "%s, which equals no recorded revision of template %s", Short(m.Runs), m.Template)
	} else if m.Runs != "" {
		line("runs", "template %s %s, equal in content", orDash(m.Template), title(m.numbers[m.Runs], m.Runs))
	}
	if m.InForce != "" {
		line("in force", "%s", title(m.numbers[m.InForce], m.InForce))
	}
	line("state", "%s, %s", m.readiness(), m.shown())
	line("a claim", "%s", m.answer())
	if m.NodeUnread {
		line("not read", "its node, which you may not read: it may be about to go")
	}
	return Escape(head) + Paint(verdict, colour) + Escape(b.String())
}

func (m *MemberStory) readiness() string {
	if m.Ready.IsZero() {
		return "not ready"
	}
	return "ready since " + clock(m.Ready.Time)
}

func (m *MemberStory) shown() string {
	if m.Hidden {
		return "hidden: the claim controller passes it over"
	}
	return "shown to claims"
}

// answer says what a bind would be answered, and what mends it.
func (m *MemberStory) answer() string {
	switch {
	case m.Allowed && m.Tolerated:
		return "gets it all the same: the pool tolerates stale members"
	case m.Allowed && m.Claimable:
		return "gets it"
	case m.Allowed:
		return "will get it once it is ready and shown"
	case m.Mode == settings.Audit:
		return "gets it: mode audit refuses nothing, and counts it"
	case m.Reason == freshness.MemberClaimed:
		return "has it already"
	case m.Reason.Fault() == freshness.FaultMember:
		return "is refused, for good: the controller replaces the member as the pool's strategy says"
	}
	return "is refused for now: this passes by itself"
}
