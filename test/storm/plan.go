package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/warmpool"
)

const (
	pools = 3
	// maxBurst is the most claims that come at once.
	maxBurst = 12
	// spare is the share of further claims that are deleted again: one in ten.
	spare = 10
	kills = 2
	// racers is the share of claims that a second update may follow at once: one
	// in ten, as many as in a long storm by chance.
	racers = 10
	// Claims that stay, and those that are deleted again, by name.
	keptPrefix, doomedPrefix = "c", "d"
)

// delays are how late a watch can be.
var delays = []time.Duration{0, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond, 3 * time.Second}

type action string

const (
	doBurst   action = "claims"
	doDrop    action = "drop"
	doUpdate  action = "update"
	doPod     action = "delete-pod"
	doMember  action = "delete-member"
	doDelay   action = "delay"
	doKill    action = "kill"
	doRestart action = "restart"
)

// step is one thing that the storm does, and the pause after it.
type step struct {
	do    action
	pool  int
	names []string
	to    content
	// pick chooses among the members that there are when the step comes.
	pick  uint64
	view  int
	delay time.Duration
	pause time.Duration
}

// content is what a template asks for. A class or an env that it had and has no
// more is a removed field.
type content struct {
	image int
	class bool
	env   bool
}

// name is the image's.
func (c content) name() string { return fmt.Sprintf("sandbox:v%d", c.image) }

// podSpec is what members run. A field is removed that stands within another one, which stays.
func (c content) podSpec() corev1.PodSpec {
	container := corev1.Container{
		Name: "c", Image: c.name(),
		SecurityContext: &corev1.SecurityContext{RunAsUser: ptr.To(int64(1000))},
		VolumeMounts:    []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "data", MountPath: "/work", SubPath: "work"}},
	}
	if c.env {
		container.Env = append(container.Env, corev1.EnvVar{Name: "STORM", Value: "1"})
		container.SecurityContext.Privileged = ptr.To(true)
	}
	spec := corev1.PodSpec{
		Containers: []corev1.Container{container},
		Volumes:    []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
	if c.class {
		spec.RuntimeClassName = ptr.To(runtimeClass)
	}
	return spec
}

// planner draws a storm, step by step, from one source of chance.
type planner struct {
	*rand.Rand
	steps []step
	now   [pools]content
	prior [pools]content
	// doomed are made already and have to be deleted again.
	doomed [pools][]string
	// total is how many claims there will be, racing how many of them a second
	// update has followed at once.
	total, racing int
	// turns are the pools whose turn is still to come in this round.
	turns []int
}

// plan is the whole storm. It depends on nothing but the seed and the number of
// claims that stay.
func plan(seed uint64, claims int) []step { return draw(seed, claims).steps }

func draw(seed uint64, claims int) *planner {
	p := &planner{Rand: rand.New(rand.NewPCG(seed, 0))}
	for i := range p.now {
		p.now[i], p.prior[i] = firstContent(), content{image: 2}
	}
	waiting := append(scenario.Names(keptPrefix, claims), scenario.Names(doomedPrefix, claims/spare)...)
	p.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
	p.total = len(waiting)
	killed, dead := 0, false
	p.add(step{do: doDelay, delay: time.Second})
	for len(waiting) > 0 {
		p.trouble()
		if dead {
			p.add(step{do: doRestart})
			dead = false
		}
		if killed < kills && len(waiting)*(kills+1) < p.total*(kills-killed) {
			p.add(step{do: doKill})
			killed, dead = killed+1, true
		}
		n := min(2+p.IntN(maxBurst-1), len(waiting))
		p.burst(waiting[:n])
		waiting = waiting[n:]
		p.pause(200, 1200)
	}
	if dead {
		p.add(step{do: doRestart})
	}
	for i := range pools {
		p.drop(i)
	}
	return p
}

// firstContent is what every template starts with.
func firstContent() content { return content{image: 1} }

func (p *planner) add(s step) { p.steps = append(p.steps, s) }

// pause makes the last step be followed by a pause, in milliseconds.
func (p *planner) pause(least, most int) {
	p.steps[len(p.steps)-1].pause = time.Duration(least+p.IntN(most-least)) * time.Millisecond
}

func (p *planner) chance(percent int) bool { return p.IntN(100) < percent }

// trouble is what comes between two bursts.
func (p *planner) trouble() {
	for view := range warmpool.Views {
		if p.chance(40) {
			p.add(step{do: doDelay, view: view, delay: delays[p.IntN(len(delays))]})
		}
	}
	for range p.IntN(3) {
		p.add(step{do: doPod, pool: p.IntN(pools), pick: p.Uint64()})
	}
	for range p.IntN(3) {
		p.add(step{do: doMember, pool: p.IntN(pools), pick: p.Uint64()})
	}
	if p.chance(30) {
		p.drop(p.IntN(pools))
	}
	if p.chance(30) {
		p.update(p.IntN(pools))
	}
}

// burst makes claims at once, most often right after, or right before, an
// update of their template.
func (p *planner) burst(names []string) {
	if len(p.turns) == 0 {
		p.turns = p.Perm(pools)
	}
	pool := p.turns[0]
	p.turns = p.turns[1:]
	if p.chance(75) {
		p.update(pool)
	}
	p.add(step{do: doBurst, pool: pool, names: names})
	for _, name := range names {
		if strings.HasPrefix(name, doomedPrefix) {
			p.doomed[pool] = append(p.doomed[pool], name)
		}
	}
	// Rarely: a whole burst may race with it, and a storm of races shows little.
	if p.chance(20) && (p.racing+len(names))*racers <= p.total {
		p.racing += len(names)
		p.pause(100, 600)
		p.update(pool)
	}
}

// update changes a template, half of the time back to what it was before.
func (p *planner) update(pool int) {
	next := p.prior[pool]
	for p.chance(50) || next == p.now[pool] {
		next = content{image: 1 + p.IntN(3), class: p.chance(50), env: p.chance(50)}
	}
	p.prior[pool], p.now[pool] = p.now[pool], next
	p.add(step{do: doUpdate, pool: pool, to: next})
}

// settled is how many binds no update and no deleted Pod can race with, however slow they are:
// those of claims that stay, are made after the last update of their template, and lose no Pod
// to the storm.
func settled(steps []step) (binds int) {
	var after [pools]int
	for _, s := range steps {
		switch s.do {
		case doUpdate:
			after[s.pool] = 0
		case doBurst:
			for _, name := range s.names {
				if strings.HasPrefix(name, keptPrefix) {
					after[s.pool]++
				}
			}
		case doPod:
			after[s.pool] = max(0, after[s.pool]-1)
		}
	}
	for _, n := range after {
		binds += n
	}
	return binds
}

func (p *planner) drop(pool int) {
	if len(p.doomed[pool]) == 0 {
		return
	}
	p.add(step{do: doDrop, pool: pool, names: p.doomed[pool]})
	p.doomed[pool] = nil
}
