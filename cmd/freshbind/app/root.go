// Package app holds freshbind's subcommands and their options.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/freshbind/freshbind/internal/cli"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

// ExitError is an error with an exit code of its own.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }

func (e *ExitError) Unwrap() error { return e.Err }

// Main runs the command line and returns the exit code: 0 done, 1 failed, 2
// wrong usage, or what the subcommand documents.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	cmd := NewCommand(genericiooptions.IOStreams{In: in, Out: out, ErrOut: errOut})
	if filepath.Base(os.Args[0]) == completionFile {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintf(cli.Escaping(errOut), "error: %v\n", err)
	var exit *ExitError
	if errors.As(err, &exit) {
		return exit.Code
	}
	return exitFailed
}

func flagError(cmd *cobra.Command, err error) error {
	return &ExitError{Code: exitUsage, Err: fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
}

// nameCommands has help texts call the program as its user does.
func nameCommands(cmd *cobra.Command, program string) {
	cmd.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: program}
	var rename func(*cobra.Command)
	rename = func(c *cobra.Command) {
		c.Example = strings.ReplaceAll(c.Example, programName+" ", program+" ")
		for _, sub := range c.Commands() {
			rename(sub)
		}
	}
	rename(cmd)
}

// NewCommand returns the root command.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	streams.Out, streams.ErrOut = cli.Escaping(streams.Out), cli.Escaping(streams.ErrOut)
	r := newEnv(streams)
	cmd := &cobra.Command{
		Use:   programName,
		Short: "Give claims on warm pools fresh sandboxes only",
		Long: "Freshbind stands beside an unmodified warm-pool system, judges every bind at the API server,\n" +
			"and refuses those that would give a claim a stale, dead or used sandbox.",
		Version:       Version(),
		Args:          cobra.ArbitraryArgs,
		RunE:          needsSubcommand,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.SetIn(streams.In)
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.ErrOut)
	cmd.SetFlagErrorFunc(flagError)
	cmd.SetVersionTemplate(thisVersion().String() + "\n")
	cmd.AddCommand(
		newManagerCommand(),
		newWebhookConfigCommand(streams),
		newSchedulerConfigCommand(streams),
		newConfigCommand(streams),
		newVersionCommand(streams),
		NewAuditCommand(streams),
		NewSimulateCommand(streams),
		NewHashCommand(streams, builtIn.Render),
		newStatusCommand(r),
		newGetCommand(r),
		newRolloutCommand(r),
		newExplainCommand(r),
		newDoctorCommand(r),
		newRelease(r).command(),
		newRoutesCommand(streams),
		newOptionsCommand(streams),
	)
	hideClusterFlags(cmd)
	nameCommands(cmd, r.program)
	return cmd
}
