// promql evaluates queries over scrapes of one target with Prometheus' own parser and engine.
//
// Usage: promql QUERIES SCRAPE...
//
// QUERIES has a query in each line, NAME<TAB>EXPRESSION. Each SCRAPE is SECONDS=FILE: the time of the scrape, and what
// it returned in the text format. Every sample gets the labels job="kube-controller-manager", instance="manager" and
// cluster="", and each scrape adds a sample up of 1, as Prometheus adds them. The queries are evaluated at the time of
// the last scrape. Each line of the output is NAME<TAB>COUNT, how many series the query has, or NAME<TAB>error: REASON.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "promql:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) < 2 {
		return errors.New("give QUERIES and at least one SECONDS=FILE")
	}
	held := series{}
	var last time.Time
	for _, arg := range args[1:] {
		seconds, file, found := strings.Cut(arg, "=")
		at, err := strconv.ParseFloat(seconds, 64)
		if !found || err != nil {
			return fmt.Errorf("%q is not SECONDS=FILE", arg)
		}
		last = time.UnixMilli(int64(at * 1000))
		if err := held.read(file, last.UnixMilli()); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	queries, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer queries.Close()
	lines := bufio.NewScanner(queries)
	for lines.Scan() {
		name, expression, found := strings.Cut(lines.Text(), "\t")
		if !found || strings.HasPrefix(name, "#") {
			continue
		}
		count, err := evaluate(engine, held, expression, last)
		if err != nil {
			fmt.Fprintf(out, "%s\terror: %v\n", name, err)
			continue
		}
		fmt.Fprintf(out, "%s\t%d\n", name, count)
	}
	return lines.Err()
}

// evaluate returns how many series the expression has.
func evaluate(engine *promql.Engine, held series, expression string, at time.Time) (int, error) {
	query, err := engine.NewInstantQuery(context.Background(), held, nil, expression, at)
	if err != nil {
		return 0, err
	}
	defer query.Close()
	result := query.Exec(context.Background())
	if result.Err != nil {
		return 0, result.Err
	}
	vector, err := result.Vector()
	if err != nil {
		return 0, err
	}
	count := 0
	for _, sample := range vector {
		if !math.IsNaN(sample.F) {
			count++
		}
	}
	return count, nil
}

// series are the samples by the text of their labels.
type series map[string]*one

type one struct {
	labels  labels.Labels
	samples []chunks.Sample
}

func (s series) read(file string, at int64) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s.add(labels.FromStrings("__name__", "up"), at, 1)
	parser := textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var read labels.Labels
		parser.Labels(&read)
		_, _, value := parser.Series()
		s.add(read, at, value)
	}
}

func (s series) add(read labels.Labels, at int64, value float64) {
	target := labels.NewBuilder(read)
	target.Set("job", "kube-controller-manager")
	target.Set("instance", "manager")
	all := target.Labels()
	key := all.String()
	if s[key] == nil {
		s[key] = &one{labels: all}
	}
	s[key].samples = append(s[key].samples, sample{at: at, value: value})
}

type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// Querier makes the series a storage.
func (s series) Querier(int64, int64) (storage.Querier, error) { return querier{s}, nil }

type querier struct{ series series }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	keys := make([]string, 0, len(q.series))
	for key := range q.series {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		one := q.series[key]
		if matches(one.labels, matchers) {
			found = append(found, storage.NewListSeries(one.labels, one.samples))
		}
	}
	return &set{series: found, at: -1}
}

// set walks over series.
type set struct {
	series []storage.Series
	at     int
}

func (s *set) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *set) At() storage.Series                { return s.series[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

func matches(of labels.Labels, matchers []*labels.Matcher) bool {
	for _, matcher := range matchers {
		if !matcher.Matches(of.Get(matcher.Name)) {
			return false
		}
	}
	return true
}

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) Close() error { return nil }
