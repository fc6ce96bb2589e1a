package app

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/cli"
)

type auditCheckOptions struct {
	streams genericiooptions.IOStreams
	file    string
	output  cli.Output
	config  string
}

func newAuditCheckCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &auditCheckOptions{streams: streams, output: cli.Output{Tables: true}}
	cmd := &cobra.Command{
		Use:   "check -f RECORDING",
		Short: "Judge a recording of audit watch --record, offline",
		Long: "Check judges a recording without a cluster.\n\n" +
			"Exit codes: 0 nothing bad was found, 1 something stale or worse was found or the recording cannot be read,\n" +
			"2 wrong usage.",
		Example: "  freshbind audit check -f today.jsonl\n  zcat today.jsonl.gz | freshbind audit check -f - -o json",
		Args:    auditNoArgs,
		RunE: func(*cobra.Command, []string) error {
			if o.file == "" {
				return auditUsage("-f is required: name a recording, or - for standard input")
			}
			if err := auditCheckOutput(&o.output); err != nil {
				return err
			}
			return o.run()
		},
	}
	cmd.Flags().StringVar(&o.config, "config", "", auditConfigUsage)
	cmd.Flags().StringVarP(&o.file, "filename", "f", "", "The recording, - for standard input.")
	o.output.AddFlags(cmd)
	return cmd
}

func (o *auditCheckOptions) run() error {
	in := o.streams.In
	if o.file != "-" {
		file, err := os.Open(o.file)
		if err != nil {
			return fmt.Errorf("-f: %w", err)
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	report, err := o.judge(in)
	if err != nil {
		return fmt.Errorf("%s: %w", o.file, err)
	}
	talk := auditTalk(o.streams, &o.output)
	for _, b := range report.Findings {
		if _, err := fmt.Fprintln(talk, b.String()); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
	}
	if err := printAuditReport(o.streams.Out, &o.output, report); err != nil {
		return err
	}
	return auditResult(report)
}

func (o *auditCheckOptions) judge(in io.Reader) (*checker.Report, error) {
	options, err := auditOptions(o.config)
	if err != nil {
		return nil, err
	}
	h := checker.NewHistory(options)
	cut, err := readAuditFile(in, h)
	if err != nil {
		return nil, err
	}
	if cut > 0 {
		if _, err := fmt.Fprintf(o.streams.ErrOut, "The recording ends in the middle of line %d: what came after is not judged.\n", cut); err != nil {
			return nil, fmt.Errorf("write output: %w", err)
		}
	}
	report := h.Judge()
	if report.SinceRV == "" {
		return nil, errors.New("the recording has no complete start, so nothing can be judged: record again with audit watch --record")
	}
	return report, nil
}
