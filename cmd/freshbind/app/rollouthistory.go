package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/internal/cli"
)

type rolloutHistory struct {
	*target
	output   cli.Output
	revision int64
}

func newRolloutHistoryCommand(r env) *cobra.Command {
	h := &rolloutHistory{target: newTarget(r)}
	cmd := &cobra.Command{
		Use:   "history (pool/NAME | template/NAME)",
		Short: "List the revisions that a template has had",
		Long: "History lists the recorded revisions of the template (of the pool's template), the oldest first. A revision that came\n" +
			"into force again has a new number. With --revision it prints the template's spec of that revision.\n\n" +
			"If a SandboxSet refers to a SandboxTemplate, history lists whichever of the two changed last. To choose, name\n" +
			"sandboxset/NAME or sandboxtemplate/NAME.\n\n" + exitCodes,
		Example: "  freshbind rollout history template/python\n" +
			"  freshbind rollout history template/python --revision=7",
		Args:              resourceArgs,
		ValidArgsFunction: h.completeNames(poolKind, templateWord),
		RunE:              func(cmd *cobra.Command, args []string) error { return h.run(cmd.Context(), args) },
	}
	h.addFlags(cmd)
	h.output.Tables, h.output.Names = true, true
	h.output.AddFlags(cmd)
	cmd.Flags().Int64Var(&h.revision, "revision", 0, "Print this revision's spec.")
	return cmd
}

func (h *rolloutHistory) run(ctx context.Context, args []string) error {
	if err := h.output.Validate(); err != nil {
		return usage("%w", err)
	}
	if h.revision < 0 {
		return usage("--revision %d: it must be the number of a revision", h.revision)
	}
	resource, err := parseResourceName(args)
	if err != nil {
		return err
	}
	c, namespace, err := h.reachCluster()
	if err != nil {
		return err
	}
	of, err := recordedOf(ctx, c, namespace, resource, h.revision, h.program+" rollout history")
	if err != nil {
		return err
	}
	if h.revision > 0 {
		return h.printSpec(of.history)
	}
	history := of.history
	if len(history) == 0 {
		return warn(h.streams.ErrOut, fmt.Sprintf("No revision of template %s is recorded: the manager records them.", of.template.GetName()))
	}
	if of.other != nil {
		if err := warn(h.streams.ErrOut, fmt.Sprintf("These are the revisions of %s, which was changed last. For those of %s: %s rollout history %s",
			cli.TypedName(of.template), cli.TypedName(of.other), h.program, cli.TypedName(of.other))); err != nil {
			return err
		}
	}
	c.Changes(history)
	h.output.Colour = cli.Colours(h.streams.Out)
	name := func(r cli.Revision) string { return "controllerrevision.apps/" + r.Name }
	return cli.NewPrinter(h.output, "TemplateRevision", name, cli.RevisionColumns(c.Now)).Print(h.streams.Out, history)
}

// recorded are the revisions of a template.
type recorded struct {
	template *unstructured.Unstructured
	history  []cli.Revision
	// other has earlier revisions, too: a pool that refers to the template, or the template;
	// nil for none.
	other *unstructured.Unstructured
}

// recordedOf reads the revisions of the resource, of which a number > 0 is wanted. Of a pool
// that refers to a template, and of that, it is the one that was changed last. command is what
// is run.
func recordedOf(ctx context.Context, c *cli.Cluster, namespace string, s resourceName, number int64, command string) (recorded, error) {
	templates, err := s.templates(ctx, c, namespace)
	if err != nil {
		return recorded{}, err
	}
	store, err := c.Load(ctx, namespace)
	if err != nil {
		return recorded{}, err
	}
	found := make([]recorded, len(templates))
	for i, template := range templates {
		found[i].template = template
		if found[i].history, err = c.Revisions(ctx, store, template); err != nil {
			return recorded{}, err
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return changedLast(found[0], found[1], number, command)
}

// changedLast chooses. Where both have several revisions a number alone names none.
func changedLast(pool, template recorded, number int64, command string) (recorded, error) {
	switch {
	case !cli.HasEarlier(pool.history):
		return template, nil
	case !cli.HasEarlier(template.history):
		return pool, nil
	}
	last := cli.CompareInForce(pool.history, template.history)
	if last == 0 || number > 0 {
		of, to := cli.TypedName(pool.template), cli.TypedName(template.template)
		return recorded{}, usage("%s has earlier revisions, and so has %s, which it refers to: say which is meant, %s %s or %s %s", of, to, command, of, command, to)
	}
	pool.other, template.other = template.template, pool.template
	if last > 0 {
		return pool, nil
	}
	return template, nil
}

func (h *rolloutHistory) printSpec(history []cli.Revision) error {
	r, err := cli.Target(history, h.revision)
	if err != nil {
		return err
	}
	spec := map[string]any{"spec": r.Recorded.Template.Object["spec"]}
	if h.output.Structured() {
		spec["name"], spec["revision"], spec["hash"] = r.Name, r.Number, r.Hash
		return h.output.PrintObject(h.streams.Out, "TemplateRevision", spec)
	}
	raw, err := yaml.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	_, err = h.streams.Out.Write(raw)
	return err
}

type rolloutUndo struct {
	*target
	dryRun string
	to     int64
}

func newRolloutUndoCommand(r env) *cobra.Command {
	u := &rolloutUndo{target: newTarget(r)}
	cmd := &cobra.Command{
		Use:   "undo (pool/NAME | template/NAME)",
		Short: "Go back to an earlier revision of a template",
		Long: "Undo writes the spec of an earlier revision into the template (into the pool's template), which then rolls out to all\n" +
			"of its pools. Members of that revision that still exist are fresh again at once.\n\n" +
			"If a SandboxSet refers to a SandboxTemplate, undo restores whichever changed last: the template, or the SandboxSet's\n" +
			"reference. To choose, name sandboxset/NAME or sandboxtemplate/NAME.\n\n" +
			"It warns if Argo CD or Flux manages the template and would revert the change. It cannot restore revisions that were\n" +
			"kept as digests (mode audit, or manager --revision-digests).\n\n" + exitCodes,
		Example: "  freshbind rollout undo template/python --dry-run=server\n" +
			"  freshbind rollout undo template/python --to-revision=7",
		Args:              resourceArgs,
		ValidArgsFunction: u.completeNames(poolKind, templateWord),
		RunE:              func(cmd *cobra.Command, args []string) error { return u.run(cmd.Context(), args) },
	}
	u.addFlags(cmd)
	addDryRun(cmd, &u.dryRun)
	cmd.Flags().Int64Var(&u.to, "to-revision", 0, "The revision to go back to; 0 for the one before the one in force.")
	return cmd
}

func (u *rolloutUndo) run(ctx context.Context, args []string) error {
	if u.to < 0 {
		return usage("--to-revision %d: it must be the number of a revision, or 0 for the one before", u.to)
	}
	dry, err := cli.ParseDryRun(u.dryRun)
	if err != nil {
		return usage("%w", err)
	}
	resource, err := parseResourceName(args)
	if err != nil {
		return err
	}
	c, namespace, err := u.reachCluster()
	if err != nil {
		return err
	}
	of, err := recordedOf(ctx, c, namespace, resource, u.to, u.program+" rollout undo")
	if err != nil {
		return err
	}
	template := of.template
	to, err := cli.Target(of.history, u.to)
	if err != nil {
		return fmt.Errorf("template %q: %w", template.GetName(), err)
	}
	title := cli.TemplateName(template)
	if to.InForce {
		return warn(u.streams.Out, fmt.Sprintf("%s skipped rollback (%s is in force)", title, to.Title()))
	}
	if err := warn(u.streams.ErrOut, cli.KeptWarning("template "+template.GetName(), template)); err != nil {
		return err
	}
	change, err := c.Undo(ctx, template, to, dry)
	if err != nil {
		return absent(err, templateWord, template.GetName(), namespace)
	}
	return errors.Join(
		warn(u.streams.Out, fmt.Sprintf("%s rolled back to %s%s", title, to.Title(), dry.Suffix())),
		warn(u.streams.Out, "  "+change),
	)
}
