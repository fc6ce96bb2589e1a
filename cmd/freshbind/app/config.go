package app

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/internal/config"
)

func newConfigCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check a configuration file of the manager, or print the defaults",
		Args:  cobra.ArbitraryArgs, RunE: needsSubcommand, FParseErrWhitelist: anyFlags,
	}
	cmd.AddCommand(newConfigValidateCommand(streams), newConfigDefaultsCommand(streams))
	return cmd
}

func newConfigValidateCommand(streams genericiooptions.IOStreams) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "validate -f FILE",
		Short: "Check a configuration file, and name the fields that are wrong",
		Example: "  freshbind config validate -f config.yaml\n" +
			"  freshbind config defaults | freshbind config validate -f -",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if file == "" {
				return usage("-f is required: the path of a configuration file, or - for the standard input")
			}
			if err := checkConfig(file, streams.In); err != nil {
				return err
			}
			_, err := fmt.Fprintln(streams.Out, "valid")
			return err
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "Path of the file, or - for the standard input.")
	return cmd
}

func checkConfig(file string, in io.Reader) error {
	if file != "-" {
		_, err := config.Load(file)
		return err
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("reading the standard input: %w", err)
	}
	_, err = config.Parse(data)
	return err
}

func newConfigDefaultsCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:     "defaults",
		Short:   "Print a configuration file with all defaults",
		Example: "  freshbind config defaults > config.yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			data, err := yaml.Marshal(config.Default())
			if err != nil {
				return fmt.Errorf("writing the defaults: %w", err)
			}
			_, err = streams.Out.Write(data)
			return err
		},
	}
}
