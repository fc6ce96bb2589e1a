package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/internal/platform"
)

const (
	poolKind     = "pool"
	templateWord = "template"
	memberKind   = "member"
	claimKind    = "claim"
)

// kindOfTarget is a word for a resource, and what else it may be called.
type kindOfTarget struct {
	resource schema.GroupResource
	aliases  []string
}

var kindsOfTargets = func() map[string]kindOfTarget {
	named := func(kind platform.Kind, aliases ...string) kindOfTarget {
		return kindOfTarget{kind.GroupResource(), slices.Concat(aliases, kind.ShortNames, []string{strings.ToLower(kind.Kind), kind.Resource})}
	}
	kinds := builtIn.Kinds()
	return map[string]kindOfTarget{
		poolKind:     named(kinds.Pool, "pools"),
		templateWord: named(kinds.Template, "templates"),
		memberKind:   named(kinds.Member, "members"),
		claimKind:    named(kinds.Claim, "claims"),
	}
}()

// wordFor returns the word for a kind as it was written, with or without its
// group; "" for none of ours.
func wordFor(written string) string {
	written, group, grouped := strings.Cut(strings.ToLower(written), ".")
	for word, kind := range kindsOfTargets {
		if (written == word || slices.Contains(kind.aliases, written)) && (!grouped || group == kind.resource.Group) {
			return word
		}
	}
	return ""
}

// resourceName is what a rollout command is about: a pool, or all pools of a template.
type resourceName struct{ word, name string }

func (s resourceName) String() string { return s.word + "/" + s.name }

// parseResourceName reads pool/NAME or template/NAME, also as two arguments.
func parseResourceName(args []string) (resourceName, error) {
	const accepted = "accepted are pool/NAME and template/NAME"
	written := strings.Join(args, "/")
	kind, name, ok := strings.Cut(written, "/")
	if !ok || name == "" || strings.Contains(name, "/") {
		return resourceName{}, usage("%q: %s", written, accepted)
	}
	word := wordFor(kind)
	if word != poolKind && word != templateWord {
		return resourceName{}, usage("%q: %q is not a kind that rolls out: %s", written, kind, accepted)
	}
	return resourceName{word, name}, nil
}

func (s resourceName) selection() cli.Selection {
	if s.word == poolKind {
		return cli.Selection{Name: s.name}
	}
	return cli.Selection{Template: s.name}
}

// find judges the pools of the subject. There is at least one.
func (s resourceName) find(ctx context.Context, c *cli.Cluster, namespace string, store *cli.Store) ([]cli.Pool, error) {
	found, err := c.Judge(store).Pools(ctx, s.selection())
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return found, nil
	}
	if s.word == poolKind {
		return nil, fmt.Errorf("pool %q does not exist in namespace %q", s.name, namespace)
	}
	if _, err := c.Get(ctx, c.Objects.Kinds().Template.GroupResource(), namespace, s.name); err != nil {
		return nil, absent(err, templateWord, s.name, namespace)
	}
	return nil, fmt.Errorf("no pool in namespace %q refers to template %q", namespace, s.name)
}

// template reads the template of the subject.
func (s resourceName) template(ctx context.Context, c *cli.Cluster, namespace string) (*unstructured.Unstructured, error) {
	name := s.name
	if s.word == poolKind {
		pool, err := c.Get(ctx, c.Objects.Kinds().Pool.GroupResource(), namespace, s.name)
		if err != nil {
			return nil, absent(err, poolKind, s.name, namespace)
		}
		name = c.Objects.Pool(pool).Template
	}
	template, err := c.Get(ctx, c.Objects.Kinds().Template.GroupResource(), namespace, name)
	return template, absent(err, templateWord, name, namespace)
}
