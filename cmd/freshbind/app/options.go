package app

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// shownClusterFlags are needed so often that every help text has them.
var shownClusterFlags = map[string]bool{"namespace": true, "context": true}

// clusterFlags are the flags that say which cluster, as whom and how.
func clusterFlags() *pflag.FlagSet {
	fs := pflag.NewFlagSet("options", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(fs)
	return fs
}

// newOptionsCommand lists them, as kubectl does: help texts are about what a
// command does.
func newOptionsCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that all commands about a cluster have in common",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(streams.Out, "All commands about a cluster accept these flags:\n\n%s", clusterFlags().FlagUsages())
			return err
		},
	}
}

// hideClusterFlags leaves them out of help texts, and says where they are. A flag
// of that name which a command defines itself is not one of them.
func hideClusterFlags(root *cobra.Command) {
	all := clusterFlags()
	for _, cmd := range append([]*cobra.Command{root}, commandsBelow(root)...) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if same := all.Lookup(f.Name); same != nil && same.Usage == f.Usage && !shownClusterFlags[f.Name] {
				f.Hidden = true
			}
		})
	}
	root.SetUsageTemplate(root.UsageTemplate() + "\nUse \"{{.Root.CommandPath}} options\" for the flags that say which cluster, as whom and how.\n")
}

func commandsBelow(cmd *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, sub := range cmd.Commands() {
		out = append(append(out, sub), commandsBelow(sub)...)
	}
	return out
}
