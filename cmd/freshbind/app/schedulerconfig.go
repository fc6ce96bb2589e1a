package app

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/scheduler"
)

type schedulerConfigOptions struct {
	config scheduler.Config
	second bool
}

func (o *schedulerConfigOptions) AddFlags(fs *pflag.FlagSet) {
	c := &o.config
	fs.StringVar(&c.URL, "url", "", "Base URL of Freshbind, https://host:port, as the scheduler reaches it. A scheduler in the host's network resolves no Service names.")
	fs.StringVar(&c.CAFile, "ca-file", "", "Path, where the scheduler runs, of a PEM file with the CA that signed Freshbind's serving certificate. Without one kube-scheduler would trust anybody.")
	fs.StringVar(&c.ServerName, "server-name", "", "Name in the serving certificate, if --url has another name or an address.")
	fs.DurationVar(&c.Timeout, "timeout", time.Second, "How long the scheduler waits for an answer.")
	fs.Int64Var(&c.Weight, "weight", 10,
		"Weight of Freshbind's scores (0 to 10) beside those of the scheduler's own plugins (0 to 100). The scheduler multiplies it by ten: with 10, a point of Freshbind's counts as 100 of theirs.")
	fs.BoolVar(&c.Ignorable, "ignorable", true, "Let the scheduler go on without Freshbind's answer. false only with --second-scheduler, because Freshbind's own pods have to be scheduled without it.")
	fs.BoolVar(&o.second, "second-scheduler", false, "Print the whole configuration of a scheduler of its own for members' pods, not a stanza for an existing one.")
	fs.StringVar(&c.SchedulerName, "scheduler-name", config.Default().Scheduling.SchedulerName, "Name of the second scheduler, of its profile and of its lease.")
	fs.StringVar(&c.LeaseNamespace, "lease-namespace", "freshbind-system", "Namespace of the second scheduler's lease.")
}

func (o *schedulerConfigOptions) Validate() error {
	c := o.config
	at, err := url.Parse(c.URL)
	switch {
	case c.URL == "":
		return errors.New("--url: required, https://host:port of Freshbind as the scheduler reaches it")
	case err != nil || at.Scheme != "https" || at.Host == "" || at.Path != "" || at.RawQuery != "":
		return fmt.Errorf("--url: %q: use https://host:port", c.URL)
	case c.CAFile == "":
		return errors.New("--ca-file: required: without a CA kube-scheduler does not check whom it talks to")
	case c.Timeout <= 0 || c.Timeout > time.Minute:
		return fmt.Errorf("--timeout: %s is out of range: use more than 0 and at most 1m", c.Timeout)
	case c.Weight < 1 || c.Weight > 1000:
		return fmt.Errorf("--weight: %d is out of range: use 1 to 1000", c.Weight)
	case !c.Ignorable && !o.second:
		return errors.New("--ignorable=false: only with --second-scheduler: while Freshbind is down it would keep all pods of the cluster, Freshbind's too, from being scheduled")
	}
	if err := validateSchedulerName(c.SchedulerName); err != nil {
		return fmt.Errorf("--scheduler-name: %w", err)
	}
	return nil
}

func newSchedulerConfigCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &schedulerConfigOptions{}
	cmd := &cobra.Command{
		Use:   "scheduler-config",
		Short: "Print the configuration that kube-scheduler needs",
		Long: "Print the extenders stanza for the configuration of an existing kube-scheduler (1.30 and later), or with\n" +
			"--second-scheduler the whole configuration of one that schedules members' pods only.\n" +
			"The manager has to run with --scheduling=Extender or --scheduling=SecondScheduler.",
		Example: "  freshbind scheduler-config --url https://10.96.7.7:443 --server-name freshbind.freshbind-system.svc --ca-file /etc/kubernetes/freshbind-ca.crt\n" +
			"  freshbind scheduler-config --second-scheduler --url https://freshbind.freshbind-system.svc --ca-file /etc/freshbind/ca.crt",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := o.Validate(); err != nil {
				return &ExitError{Code: exitUsage, Err: err}
			}
			printed := o.config.Stanza()
			if o.second {
				printed = o.config.SecondScheduler()
			}
			out, err := yaml.Marshal(printed)
			if err != nil {
				return fmt.Errorf("encoding scheduler configuration: %w", err)
			}
			_, err = streams.Out.Write(out)
			return err
		},
	}
	o.AddFlags(cmd.Flags())
	return cmd
}
