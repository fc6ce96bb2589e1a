package cli

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/freshbind/freshbind/internal/freshness"
)

// PoolName is what -o name prints, as kubectl does.
func PoolName(p Pool) string { return objectName(p.Object.GroupVersionKind().GroupKind(), p.Name) }

// MemberName is what -o name prints.
func MemberName(m Member) string { return objectName(m.kind, m.Name) }

// TypedName is how an object is named to a command, and no other one by that.
func TypedName(obj *unstructured.Unstructured) string {
	return strings.ToLower(obj.GetKind()) + "/" + obj.GetName()
}

// TemplateName is what says which template was written.
func TemplateName(template *unstructured.Unstructured) string {
	return objectName(template.GroupVersionKind().GroupKind(), template.GetName())
}

func objectName(kind schema.GroupKind, name string) string {
	return strings.ToLower(kind.Kind) + "." + kind.Group + "/" + name
}

// PoolColumns are those of status. now dates what is relative.
func PoolColumns(namespaces, wide bool, now func() time.Time) []Column[Pool] {
	of := func(n func(Pool) int) func(Pool) string {
		return func(p Pool) string { return fmt.Sprintf("%d/%d", n(p), p.Replicas) }
	}
	columns := []Column[Pool]{
		Text("POOL", func(p Pool) string { return p.Name }),
		Text("STRATEGY", func(p Pool) string { return orDash(string(p.Strategy)) }),
		Text("MODE", func(p Pool) string { return string(p.Mode) }),
		Text("READY", of(func(p Pool) int { return p.Ready })),
		Text("UP-TO-DATE", of(func(p Pool) int { return p.Updated })),
		Number("CLAIMABLE", func(p Pool) int { return p.Claimable }),
		Number("STALE", func(p Pool) int { return p.Stale }),
		Number("UNKNOWN", func(p Pool) int { return p.Unknown }),
		Text("REVISION", func(p Pool) string { return hashCell(p.Revision, wide) }),
		{Name: "STATE", Of: func(p Pool) Cell { return Cell{p.Words(), p.State.Tone()} }},
		Text("SINCE", func(p Pool) string { return ageOf(p.Since, now) }),
		OnlyWide(Text("TEMPLATE", func(p Pool) string { return p.Template })),
		OnlyWide(Text("NUMBER", func(p Pool) string { return numberCell(p.Number) })),
		OnlyWide(Number("HIDDEN", func(p Pool) int { return p.Hidden })),
		OnlyWide(Number("TERMINATING", func(p Pool) int { return p.Leaving })),
		OnlyWide(Text("ADMIT", func(p Pool) string { return orDash(p.Admit) })),
		OnlyWide(Text("MESSAGE", func(p Pool) string { return orDash(p.Message) })),
	}
	if namespaces {
		columns = append([]Column[Pool]{Text("NAMESPACE", func(p Pool) string { return p.Namespace })}, columns...)
	}
	return columns
}

var classTones = map[freshness.Class]Tone{
	freshness.Current: Good, freshness.Stale: Busy, freshness.Former: Busy, freshness.Unknown: Busy, freshness.Unusable: Bad,
}

// MemberColumns are those of get members.
func MemberColumns(namespaces, wide bool, now func() time.Time) []Column[Member] {
	columns := []Column[Member]{
		Text("NAME", func(m Member) string { return m.Name }),
		Text("POOL", func(m Member) string { return m.Pool }),
		Text("READY", func(m Member) string { return yesNo(m.Ready) }),
		Text("CLAIMABLE", func(m Member) string { return yesNo(m.Claimable) }),
		{Name: "CLASS", Of: func(m Member) Cell { return Cell{string(m.Class), classTones[m.Class]} }},
		Text("REASON", func(m Member) string { return string(m.Reason) }),
		Text("REVISION", func(m Member) string { return hashCell(m.Revision, wide) }),
		Text("NUMBER", func(m Member) string { return numberCell(m.Number) }),
		Text("AGE", func(m Member) string { return ageOf(m.Created, now) }),
		OnlyWide(Text("HIDDEN", func(m Member) string { return yesNo(m.Hidden) })),
		OnlyWide(Text("TERMINATING", func(m Member) string { return yesNo(m.Leaving) })),
		OnlyWide(Text("DETAIL", func(m Member) string { return orDash(m.Detail) })),
	}
	if namespaces {
		columns = append([]Column[Member]{Text("NAMESPACE", func(m Member) string { return m.Namespace })}, columns...)
	}
	return columns
}

// RevisionColumns are those of rollout history.
func RevisionColumns(now func() time.Time) []Column[Revision] {
	return []Column[Revision]{
		Text("REVISION", func(r Revision) string { return fmt.Sprint(r.Number) }),
		Text("HASH", func(r Revision) string { return r.Hash }),
		{Name: "IN-FORCE", Of: func(r Revision) Cell {
			if r.InForce {
				return Cell{"yes", Good}
			}
			return Cell{Text: "no"}
		}},
		Text("AGE", func(r Revision) string { return ageOf(r.Since, now) }),
		Text("CHANGE", func(r Revision) string {
			if r.Digests {
				return "<only digests were kept>"
			}
			return orDash(r.Change)
		}),
		OnlyWide(Text("NAME", func(r Revision) string { return r.Name })),
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func hashCell(hash string, wide bool) string {
	if wide {
		return orDash(hash)
	}
	return orDash(Short(hash))
}

func numberCell(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func ageOf(t metav1.Time, now func() time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(0, now().Sub(t.Time)))
}
