package freshness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/freshbind/freshbind/internal/revision"
)

// heavy is a bind of a member with so many variables, none of which is as the
// template in force, or one of the revisions before it, has it.
func heavy(t *testing.T, variables, revisions int, paths ...string) Snapshot {
	t.Helper()
	build := func(value string) revision.Blueprint {
		env := make([]any, variables)
		for i := range env {
			env[i] = map[string]any{"name": fmt.Sprintf("V%05d", i), "value": value}
		}
		b, err := revision.FromPodSpec(map[string]any{"containers": []any{map[string]any{"name": "c", "env": env}}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	s := Snapshot{
		Operation: Birth, Pool: &Pool{Name: "p", UID: "p", Template: "t", Strategy: Recreate},
		Member:   Member{Name: "m", Controller: Owner{Kind: OwnedByPool, Name: "p", UID: "p"}, Content: build("mine")},
		Template: &Template{Name: "t", Content: build("live")},
	}
	s.Template.Hash = s.Template.Content.Hash()
	for i := range revisions {
		b := build(fmt.Sprint("older-", i))
		s.Known = append(s.Known, Known{Hash: b.Hash(), Content: b})
	}
	var err error
	if s.Injected, err = revision.ParsePaths(paths...); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAVerdictCostsABoundedAmountOfWork(t *testing.T) {
	var paths []string
	for i := range 3000 {
		paths = append(paths, fmt.Sprintf("podTemplate.spec.containers[name=c].env[name=X%04d].value=some", i))
	}
	cases := map[string]struct {
		snapshot Snapshot
		wantWork int // at most
		decided  bool
	}{
		"what people have":                  {heavy(t, 100, 10), 7000, true},
		"many variables":                    {heavy(t, 20_000, 10), MaxWork, false},
		"many variables, many paths":        {heavy(t, 5_000, 5, paths...), MaxWork, false},
		"a member that is the one in force": {func() Snapshot { s := heavy(t, 20_000, 10); s.Member.Content = s.Template.Content; return s }(), 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := revision.NewBudget(MaxWork, nil)
			v, err := JudgeWithin(tc.snapshot, b)
			if decided := err == nil; decided != tc.decided {
				t.Errorf("JudgeWithin() = %+v, %v", v, err)
			}
			if err != nil && (v != Verdict{} || !errors.Is(err, revision.ErrBudget)) {
				t.Errorf("JudgeWithin() = %+v, %v: want no verdict, and ErrBudget", v, err)
			}
			// One step may go beyond the bound, by what it costs itself.
			if slack := 2*20_000 + len(paths); b.Spent() > tc.wantWork+slack || tc.decided && b.Spent() > tc.wantWork {
				t.Errorf("%d leaves were looked at, want at most %d", b.Spent(), tc.wantWork)
			}
			for _, revisionOf := range []func(Snapshot, *revision.Budget) (string, error){RevisionWithin, podRevisionOfMember} {
				if hash, err := revisionOf(tc.snapshot, revision.NewBudget(MaxWork, nil)); (err == nil) != tc.decided || err != nil && hash != "" {
					t.Errorf("the revision is %q, %v", hash, err)
				}
			}
		})
	}
}

// podRevisionOfMember is that of a Pod which is what its Sandbox says.
func podRevisionOfMember(s Snapshot, b *revision.Budget) (string, error) {
	s.Pod = &Pod{Content: s.Member.Content}
	return PodRevisionWithin(s, b)
}

func TestAVerdictEndsAtItsDeadline(t *testing.T) {
	asked := 0
	stop := func() error {
		if asked++; asked > 3 {
			return context.DeadlineExceeded
		}
		return nil
	}
	b := revision.NewBudget(MaxWork, stop)
	if v, err := JudgeWithin(heavy(t, 2_000, 20), b); !errors.Is(err, context.DeadlineExceeded) || (v != Verdict{}) {
		t.Errorf("JudgeWithin() = %+v, %v, want no verdict at the deadline", v, err)
	}
	if asked != 4 || b.Spent() > 20_000 {
		t.Errorf("asked %d times and looked at %d leaves after the deadline", asked, b.Spent())
	}
}

// What is far from the member is not looked at to its end.
func TestOlderRevisionsAreOnlyCounted(t *testing.T) {
	s := heavy(t, 1000, 9)
	within := revision.NewBudget(MaxWork, nil)
	near := s.Template.Content
	// One leaf differs from the template in force.
	content, err := revision.Parse([]byte(strings.Replace(string(near.JSON()), `"live"`, `"mine"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	s.Member.Content = content
	v, err := JudgeWithin(s, within)
	if err != nil || v.Reason != UnknownRevision {
		t.Fatalf("JudgeWithin() = %+v, %v", v, err)
	}
	// A whole comparison looks at 2000 variables' fields, an early end at none of
	// them but the first: only the lists' lengths are paid for.
	if got := within.Spent(); got > 7_000+9*2_100 {
		t.Errorf("%d leaves were looked at", got)
	}
}

func TestDenialsHoldNoUIDsAndNoAddresses(t *testing.T) {
	s := Snapshot{
		Operation: Bind, ClaimRef: Owner{Name: "c", UID: "uid-written"}, Claim: &Claim{UID: "uid-stored"},
		Member: Member{Name: "m", UID: "uid-member", Controller: Owner{Kind: OwnedByPool, Name: "p", UID: "uid-pool"}, PodName: "m", PodIPs: []string{"10.1.2.3"}},
		Pool:   &Pool{Name: "p", UID: "uid-other"}, Pod: &Pod{ControllerUID: "uid-member", IPs: []string{"10.9.9.9"}},
	}
	for name, r := range map[string]rule{"claim": claimLives, "pool": belongs, "pod": podLives} {
		v := r(s)
		if v == nil || v.Allowed {
			t.Fatalf("%s: no denial", name)
		}
		if strings.Contains(v.Detail, "uid-") || strings.Contains(v.Detail, "10.") {
			t.Errorf("%s: %s", name, v.Detail)
		}
	}
}
