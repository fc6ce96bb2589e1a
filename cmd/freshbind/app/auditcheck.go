package app

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/freshbind/freshbind/internal/auditlog"
	"github.com/freshbind/freshbind/internal/auditpage"
	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/cli"
)

type auditCheckOptions struct {
	streams genericiooptions.IOStreams
	files   []string
	output  cli.Output
	config  string
	// platform is what a log is judged for; empty for the one that it has.
	platform string
}

func newAuditCheckCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &auditCheckOptions{streams: streams, output: cli.Output{Tables: true, Pages: true}}
	cmd := &cobra.Command{
		Use:   "check -f FILE",
		Short: "Judge a recording of audit watch --record, or a cluster's own audit logs, offline",
		Long: "Check judges without a cluster: a recording of audit watch --record, or audit logs of a cluster in which Freshbind\n" +
			"never ran (audit.k8s.io/v1, level RequestResponse). It takes logs as kube-apiserver writes them and as EKS, GKE and\n" +
			"AKS export them: several files, in any order, also compressed with gzip. It says what a log lacks.\n\n" +
			"Exit codes: 0 nothing bad was found, 1 something stale or worse was found, the file cannot be read, or the log holds\n" +
			"too little to judge anything, 2 wrong usage.",
		Example: "  freshbind audit check -f today.jsonl\n  zcat today.jsonl.gz | freshbind audit check -f - -o json\n" +
			"  freshbind audit check -f audit.log -f audit-2026-01-02.log.gz -o html > report.html",
		Args: auditNoArgs,
		RunE: func(*cobra.Command, []string) error {
			if len(o.files) == 0 || slices.Contains(o.files, "") {
				return auditUsage("-f is required: name a recording or an audit log, or - for standard input")
			}
			if err := checkPlatform(o.platform); err != nil {
				return err
			}
			if err := auditCheckOutput(&o.output); err != nil {
				return err
			}
			return o.run()
		},
	}
	cmd.Flags().StringVar(&o.config, "config", "", auditConfigUsage)
	cmd.Flags().StringVar(&o.platform, "platform", "", "The warm-pool system to judge, "+strings.Join(checker.Platforms(), " or ")+", where an audit log has several.")
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "The recording or audit log, - for standard input; again for each file of a log.")
	o.output.AddFlags(cmd)
	return cmd
}

func (o *auditCheckOptions) run() error {
	options, err := auditOptions(o.config)
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		// A log of millions of events is mostly memory that stays: half as much on top of it costs little time.
		defer debug.SetGCPercent(debug.SetGCPercent(50))
	}
	options.KeepBinds = o.output.Format == cli.HTML // only the page shows those that were fresh
	judged, err := o.judge(options)
	if err != nil {
		return err
	}
	report := judged.report
	talk := auditTalk(o.streams, &o.output)
	for _, b := range report.Findings {
		if _, err := fmt.Fprintln(talk, cli.OneLine(b.String())); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
	}
	if o.output.Format == cli.HTML {
		err = auditpage.Write(o.streams.Out, report, judged.history.Pools())
	} else {
		err = printAuditReport(o.streams.Out, &o.output, report)
	}
	if err != nil {
		return err
	}
	if err := auditResult(report); err != nil {
		return err
	}
	return judged.doubt
}

// auditJudged is a judgement. doubt says why it proves nothing that nothing was found.
type auditJudged struct {
	history *checker.History
	report  *checker.Report
	doubt   error
}

func (o *auditCheckOptions) judge(options checker.Options) (*auditJudged, error) {
	var log *auditlog.Log
	for i, name := range o.files {
		in, closeFile, err := o.open(name)
		if err != nil {
			return nil, err
		}
		defer closeFile()
		head, _ := in.Peek(auditHead) // an error comes again when it is read
		isLog := auditlog.Looks(head)
		switch {
		case !isLog && o.platform != "":
			return nil, auditUsage("--platform: -f %s is no audit log, and a recording is of one warm-pool system", name)
		case !isLog && len(o.files) > 1:
			return nil, auditUsage("-f %s: it is no audit log, and a recording is judged alone", name)
		case !isLog:
			return o.judgeRecording(name, in, options)
		case i == 0:
			log = auditlog.New()
		}
		if err := log.Read(name, in); err != nil {
			return nil, err
		}
	}
	return judgeAuditLog(log, o.platform, options)
}

// auditHead is how much of a file is looked at to tell what it is.
const auditHead = 4096

func (o *auditCheckOptions) open(name string) (in *bufio.Reader, closeFile func(), err error) {
	if name == "-" {
		return bufio.NewReaderSize(o.streams.In, auditHead), func() {}, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, fmt.Errorf("-f: %w", err)
	}
	return bufio.NewReaderSize(file, auditHead), func() { _ = file.Close() }, nil
}

func judgeAuditLog(log *auditlog.Log, platform string, options checker.Options) (*auditJudged, error) {
	if found := log.Platforms(); platform == "" && len(found) > 1 {
		return nil, auditUsage("the log holds writes of %s, which are judged one at a time: choose one by --platform", strings.Join(found, " and of "))
	}
	h, missing, err := log.History(platform, options)
	if err != nil && !errors.Is(err, auditlog.ErrNothing) {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("nothing was judged: %w: %s", err, strings.Join(missing.Notes, " "))
	}
	out := &auditJudged{history: h, report: h.Judge()}
	out.report.Missing = missing.Notes
	if !missing.Judgeable {
		out.doubt = errors.New("too little is in the log: that nothing was found proves nothing")
	}
	return out, nil
}

func (o *auditCheckOptions) judgeRecording(name string, in io.Reader, options checker.Options) (*auditJudged, error) {
	h := checker.NewHistory(options)
	cut, err := readAuditFile(in, h)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if cut > 0 {
		if _, err := fmt.Fprintf(o.streams.ErrOut, "The recording ends in the middle of line %d: what came after is not judged.\n", cut); err != nil {
			return nil, fmt.Errorf("write output: %w", err)
		}
	}
	report := h.Judge()
	if report.SinceRV == "" {
		return nil, fmt.Errorf("%s: the recording has no complete start, so nothing can be judged: record again with audit watch --record", name)
	}
	return &auditJudged{history: h, report: report}, nil
}
