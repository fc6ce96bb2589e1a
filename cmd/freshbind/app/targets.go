package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// wordsForKinds, each with its plural. A pool that is its own template is a pool.
var wordsForKinds = []struct{ word, plural string }{{poolKind, "pools"}, {templateWord, "templates"}, {memberKind, "members"}, {claimKind, "claims"}}

func kindOf(kinds platform.Kinds, word string) platform.Kind {
	switch word {
	case poolKind:
		return kinds.Pool
	case templateWord:
		return kinds.Template
	case memberKind:
		return kinds.Member
	}
	return kinds.Claim
}

// resourceOf is what a word stands for.
func resourceOf(kinds platform.Kinds, word string) schema.GroupResource {
	return kindOf(kinds, word).GroupResource()
}

// wordFor returns the word for a kind as it was written, with or without its
// group; "" for none of ours.
func wordFor(written string) string {
	for _, objects := range commandedObjects() {
		if word := wordAmong(objects.Kinds(), written); word != "" {
			return word
		}
	}
	return ""
}

// wordAmong is wordFor, of the kinds of one platform.
func wordAmong(kinds platform.Kinds, written string) string {
	for _, w := range wordsForKinds {
		if isWritten(kindOf(kinds, w.word), written, w.word, w.plural) {
			return w.word
		}
	}
	if isWritten(kinds.SharedTemplate, written) {
		return templateWord
	}
	return ""
}

// isWritten reports whether a kind was written, by one of its names or of these.
func isWritten(kind platform.Kind, written string, names ...string) bool {
	written, group, grouped := strings.Cut(strings.ToLower(written), ".")
	names = slices.Concat(kind.ShortNames, names, []string{strings.ToLower(kind.Kind), kind.Resource})
	return !kind.Empty() && slices.Contains(names, written) && (!grouped || group == kind.Group)
}

// resourceName is what a rollout command is about: a pool, or all pools of a template. kind is
// as it was written.
type resourceName struct{ word, name, kind string }

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
	return resourceName{word, name, kind}, nil
}

// selection are the pools of the subject. Where the kind of a template is named, those count
// that refer to one of that kind.
func (s resourceName) selection(kinds platform.Kinds) cli.Selection {
	if s.word == poolKind {
		return cli.Selection{Name: s.name}
	}
	out := cli.Selection{Template: s.name}
	if isWritten(kinds.SharedTemplate, s.kind) {
		out.TemplateKind = kinds.SharedTemplate.Kind
	}
	return out
}

// check refuses a kind that another platform has: an object of that name here is not the
// one that was meant.
func (s resourceName) check(kinds platform.Kinds) error {
	if wordAmong(kinds, s.kind) == "" {
		return usage("%q is not a kind of %s: choose the warm-pool system that has it with --platform", s.kind, kinds.Product)
	}
	return nil
}

// find judges the pools of the subject. There is at least one.
func (s resourceName) find(ctx context.Context, c *cli.Cluster, namespace string, store *cli.Store) ([]cli.Pool, error) {
	if err := s.check(c.Objects.Kinds()); err != nil {
		return nil, err
	}
	found, err := c.Judge(store).Pools(ctx, s.selection(c.Objects.Kinds()))
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return found, nil
	}
	if s.word == poolKind {
		return nil, fmt.Errorf("pool %q does not exist in namespace %q", s.name, namespace)
	}
	if _, err := s.templates(ctx, c, namespace); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("no pool in namespace %q refers to template %q", namespace, s.name)
}

// templates reads what says what members of the subject are built from: its template, and
// before that a pool which could be its own, and refers to one. Whoever names a kind means an
// object of that kind.
func (s resourceName) templates(ctx context.Context, c *cli.Cluster, namespace string) ([]*unstructured.Unstructured, error) {
	kinds := c.Objects.Kinds()
	if err := s.check(kinds); err != nil {
		return nil, err
	}
	if isWritten(kinds.SharedTemplate, s.kind) {
		template, err := c.Get(ctx, kinds.SharedTemplate.GroupResource(), namespace, s.name)
		return []*unstructured.Unstructured{template}, absent(err, templateWord, s.name, namespace)
	}
	if s.word == templateWord {
		template, err := c.Template(ctx, namespace, s.name)
		return []*unstructured.Unstructured{template}, absent(err, templateWord, s.name, namespace)
	}
	pool, err := c.Get(ctx, kinds.Pool.GroupResource(), namespace, s.name)
	if err != nil {
		return nil, absent(err, poolKind, s.name, namespace)
	}
	isTemplate, is := kinds.Pool.GroupKind == kinds.Template.GroupKind, c.Objects.Pool(pool)
	if isTemplate && (is.TemplateKind == "" || isWritten(kinds.Pool, s.kind)) {
		return []*unstructured.Unstructured{pool}, nil
	}
	template, err := c.TemplateOf(ctx, pool)
	switch {
	case !isTemplate:
		return []*unstructured.Unstructured{template}, absent(err, templateWord, is.Template, namespace)
	case apierrors.IsNotFound(err):
		return []*unstructured.Unstructured{pool}, nil
	}
	return []*unstructured.Unstructured{pool, template}, err
}
