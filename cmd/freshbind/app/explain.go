package app

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/freshbind/freshbind/internal/cli"
)

// story is something that can be told to people and to programs.
type story interface{ Text(colour bool) string }

type explain struct {
	*target
	output cli.Output
	// kind is that of the story for programs.
	kind string
}

func newExplainCommand(r env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Explain why a claim got its sandbox, or why a member can or cannot be claimed",
		Args:  cobra.ArbitraryArgs,
		RunE:  needsSubcommand, FParseErrWhitelist: anyFlags,
	}
	claim := &explain{target: newTarget(r), kind: "ClaimExplanation"}
	member := &explain{target: newTarget(r), kind: "MemberExplanation"}
	cmd.AddCommand(
		claim.command(claimKind, "Tell what a claim's sandbox was built from, what was in force, and which binds were refused",
			"Claim compares the claim's sandbox, by content, with the revisions of its template, and lists the verdicts on the\n"+
				"claim's earlier binds. Those come from events, which the API server keeps for an hour.",
			"  freshbind explain claim c42 -n prod",
			func(cmd *cobra.Command, c *cli.Cluster, namespace, name string) (story, error) {
				return c.ExplainClaim(cmd.Context(), namespace, name)
			}),
		member.command(memberKind, "Tell whether a new claim could get a member, and why",
			"Member judges a member as admission judges a bind: from what is stored now, with its Pod and its node.",
			"  freshbind explain member python-7xk2p -n prod",
			func(cmd *cobra.Command, c *cli.Cluster, namespace, name string) (story, error) {
				return c.ExplainMember(cmd.Context(), namespace, name)
			}),
	)
	return cmd
}

func (e *explain) command(kind, short, long, example string,
	explanationOf func(cmd *cobra.Command, c *cli.Cluster, namespace, name string) (story, error),
) *cobra.Command {
	cmd := &cobra.Command{
		Use: kind + " NAME", Short: short, Long: long + "\n\n" + exitCodes, Example: example,
		Args: one("the name of one " + kind), ValidArgsFunction: e.completeNames(kind),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := e.output.Validate(); err != nil {
				return usage("%w", err)
			}
			c, namespace, err := e.reachCluster()
			if err != nil {
				return err
			}
			explanation, err := explanationOf(cmd, c, namespace, args[0])
			if err != nil {
				return absent(err, kind, args[0], namespace)
			}
			return e.print(explanation)
		},
	}
	e.addFlags(cmd)
	e.output.AddFlags(cmd)
	return cmd
}

func (e *explain) print(explanation story) error {
	if e.output.Structured() {
		return e.output.PrintObject(e.streams.Out, e.kind, explanation)
	}
	if _, err := io.WriteString(cli.Raw(e.streams.Out), explanation.Text(cli.Colours(e.streams.Out))); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
