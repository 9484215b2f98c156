// Command cron-schedules prints the table of cron schedules that the tests of the cronjob controller compare with: when
// robfig/cron v3, the library of upstream, starts next, around changes of the offset of time zones.
//
// Usage: go run . > ../../controllers/apps/src/cronjob/tests/schedules.tsv
package main

import (
	"fmt"
	"math/rand"
	"strings"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

// rows is how many starts are computed.
const rows = 1100

// zones have changes of every sort: at midnight, of half an hour or two, of a whole day, negative, and none.
var zones = []string{
	"UTC", "America/New_York", "Europe/London", "Europe/Dublin", "Europe/Berlin", "America/Sao_Paulo",
	"America/Havana", "America/Asuncion", "America/St_Johns", "America/Caracas", "Asia/Beirut", "Asia/Tehran",
	"Asia/Kathmandu", "Asia/Pyongyang", "Africa/Cairo", "Africa/Casablanca", "Atlantic/Azores", "Europe/Moscow",
	"Antarctica/Troll", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham",
}

var schedules = []string{
	"* * * * *", "*/15 * * * *", "30 * * * ?", "0 0 * * *", "30 0 * * *", "0 1 * * *", "30 1 * * *", "15 2 * * *",
	"30 2 * * *", "0 3 * * *", "0 12 1 * *", "0 0 * * SUN", "0 0 1,15 * 1", "59 23 28-31 * *", "15 1-3 * * *",
	"0 0 29 2 *", "*/7 */5 */3 * *", "30 6-16/4 * * 1-5", "0 0 1 JAN-jun/2 *", "5/20 23,0 * * ?", "0 23 30 * *",
	"@yearly", "@monthly", "@weekly", "@daily", "@hourly", "@every 90m", "@every 1h0m0.5s", "0 0 31 2 *", ", * * * *",
}

// odd schedules are wrong, or look so.
var odd = []string{
	"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * * 7",
	"5-1 * * * *", "1-2-3 * * * *", "1/2/3 * * * *", "*/0 * * * *", "-1 * * * *", "*/-1 * * * *", "x * * * *",
	"* * * foo *", "* * * * mon-", "1.5 * * * *", "99999999999999999999 * * * *", "@never", "@Daily", "@every", "@every x",
	"TZ=Mars/Olympus * * * * *", "TZ=0", "CRON_TZ=UTC", "tz=UTC * * * * *", "TZ=../UTC * * * * *", "TZ=europe/berlin * * * * *",
	"*-5 * * * *", "1- * * * *", "*/ * * * *", "1,,2,60 * * * *", "1,,2 * * * *", "*-5/2 * * * *", "TZ= 0 5 * * *", "TZ=UTC  0  5 * * *", "+1 * * * *", " 0 5 * * *", "0 5 * * 0-7", "59/1 * * * *", "*/100 * * * *", "0 0 * * *,1",
	"@every 0s", "@every -1h", "@every 1h30m1.9s", "TZ=Asia/Tokyo @every 1h", "TZ=Asia/Tokyo @daily", "0 0 * * ?/2", "0 0 */40 * *",
}

// changes are the seconds at which the offset of the zone changes.
func changes(zone *time.Location) []int64 {
	var found []int64
	for year := range 16 {
		at := time.Date(2010+year, 1, 1, 0, 0, 0, 0, time.UTC).In(zone)
		for at.Year() <= 2010+year {
			_, end := at.ZoneBounds()
			if end.IsZero() {
				break
			}
			if end.UTC().Year() == 2010+year {
				found = append(found, end.Unix())
			}
			at = end
		}
	}
	return found
}

func parse(spec string) (schedule cron.Schedule, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("invalid schedule format: %v", problem)
		}
	}()
	return cron.ParseStandard(spec)
}

func main() {
	random := rand.New(rand.NewSource(1))
	for n := range rows {
		name, spec := zones[n%len(zones)], schedules[random.Intn(len(schedules))]
		zone, err := time.LoadLocation(name)
		if err != nil {
			panic(err)
		}
		all := append(changes(zone), 1720000000, 1677600000)
		from := time.Unix(all[random.Intn(len(all))]+[]int64{-90000, -5400, -1800, -1, 0, 1800, 3599}[random.Intn(7)], 0)
		prefix := []string{"TZ=", "CRON_TZ="}[random.Intn(2)]
		schedule, err := parse(prefix + name + " " + spec)
		if err != nil {
			panic(err)
		}
		starts, at := []string{}, from
		for range 3 {
			next := schedule.Next(at)
			if next.IsZero() {
				starts = append(starts, "never")
				break
			}
			starts = append(starts, fmt.Sprint(next.Unix()-from.Unix()))
			at = next
		}
		if at.Year() > 2025 {
			// Rules of the future change: the databases of the two differ.
			continue
		}
		fmt.Printf("%s%s %s\t%d\t%s\n", prefix, name, spec, from.Unix(), strings.Join(starts, " "))
	}
	for _, spec := range odd {
		if schedule, err := parse(spec); err != nil {
			fmt.Printf("%s\terror\t%v\n", spec, err)
		} else {
			start := time.Unix(1700000000, 0)
			fmt.Printf("%s\t%d\t%d\n", spec, start.Unix(), schedule.Next(start).Unix()-start.Unix())
		}
	}
}
