package app

import (
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/internal/cli"
)

// story is something that can be told to people and to programs.
type story interface{ Text(colour bool) string }

type explain struct {
	*target
	format string
}

func newExplainCommand(r reach) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Tell why a claim got what it has, or why a member can be claimed or not",
		Args:  cobra.ArbitraryArgs,
		RunE:  needsSubcommand, FParseErrWhitelist: anyFlags,
	}
	claim := &explain{target: newTarget(r)}
	member := &explain{target: newTarget(r)}
	cmd.AddCommand(
		claim.command(claimKind, "Tell what a claim's sandbox was built from, what was in force, and what was refused before",
			"Claim compares the claim's sandbox, by content, with the revisions of its template, and lists the verdicts on the\n"+
				"claim's earlier binds. Those are from events, which the API server keeps for an hour.",
			"  freshbind explain claim c42 -n prod",
			func(cmd *cobra.Command, c *cli.Cluster, namespace, name string) (story, error) {
				return c.ExplainClaim(cmd.Context(), namespace, name)
			}),
		member.command(memberKind, "Tell whether a claim that comes now could be given a member, and why",
			"Member judges a member as a bind would be: from what is stored now, its Pod and its node included.",
			"  freshbind explain member python-7xk2p -n prod",
			func(cmd *cobra.Command, c *cli.Cluster, namespace, name string) (story, error) {
				return c.ExplainMember(cmd.Context(), namespace, name)
			}),
	)
	return cmd
}

func (e *explain) command(kind, short, long, example string,
	tell func(cmd *cobra.Command, c *cli.Cluster, namespace, name string) (story, error),
) *cobra.Command {
	cmd := &cobra.Command{
		Use: kind + " NAME", Short: short, Long: long + "\n\n" + exitCodes, Example: example,
		Args: one("the name of one " + kind), ValidArgsFunction: e.completeNames(kind),
		RunE: func(cmd *cobra.Command, args []string) error {
			if e.format != "" && e.format != cli.JSON && e.format != cli.YAML {
				return usage("-o %q: accepted are json, yaml", e.format)
			}
			c, namespace, err := e.reachCluster()
			if err != nil {
				return err
			}
			told, err := tell(cmd, c, namespace, args[0])
			if err != nil {
				return absent(err, kind, args[0], namespace)
			}
			return e.print(told)
		},
	}
	e.addFlags(cmd)
	cmd.Flags().StringVarP(&e.format, "output", "o", "", "Output format: json or yaml; words without it.")
	return cmd
}

func (e *explain) print(told story) error {
	raw := []byte(told.Text(cli.Colours(e.streams.Out)))
	var err error
	switch e.format {
	case cli.JSON:
		raw, err = cli.IndentedJSON(told)
	case cli.YAML:
		raw, err = yaml.Marshal(told)
	}
	if err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	if _, err := e.streams.Out.Write(raw); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
