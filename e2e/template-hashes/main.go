// Command template-hashes prints what the daemonset controller needs to name revisions as upstream does: by a hash of a
// pod template as go-spew prints it, with all fields of the Go types.
//
// Usage:
//
//	go run . types > ../../controllers/apps/src/daemonset/template_hash/types.tsv
//	go run . hashes > ../../controllers/apps/src/daemonset/tests/template_hashes.tsv
package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"reflect"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
)

// handwritten are the types that the controller prints by rules of its own: their JSON is not that of their fields.
var handwritten = map[string]bool{
	"resource.Quantity": true, "intstr.IntOrString": true, "v1.Time": true, "v1.ManagedFieldsEntry": true,
}

func main() {
	if len(os.Args) != 2 {
		fail("usage: template-hashes types|hashes")
	}
	switch os.Args[1] {
	case "types":
		printTypes()
	case "hashes":
		printHashes()
	default:
		fail("usage: template-hashes types|hashes")
	}
}

// printTypes prints a row for each named type: its name, and its underlying type or the fields of the struct, each as
// NAME:JSON NAME:TYPE. An embedded struct, whose fields are in the JSON of the outer one, has no JSON name.
func printTypes() {
	rows := map[string]string{}
	seen := map[string]reflect.Type{}
	visit(reflect.TypeFor[corev1.PodTemplateSpec](), rows, seen)
	names := make([]string, 0, len(rows))
	for name := range rows {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Printf("%s\t%s\n", name, rows[name])
	}
}

func visit(t reflect.Type, rows map[string]string, seen map[string]reflect.Type) {
	if handwritten[t.String()] {
		return
	}
	if t.PkgPath() != "" {
		if other, ok := seen[t.String()]; ok {
			if other != t {
				fail(fmt.Sprintf("two types have the name %s", t))
			}
			return
		}
		seen[t.String()] = t
	}
	switch t.Kind() {
	case reflect.Struct:
		fields := []string{"struct"}
		for i := range t.NumField() {
			field := t.Field(i)
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if (name == "") != (field.Anonymous && strings.Contains(options, "inline") || field.Anonymous && options == "") {
				fail(fmt.Sprintf("field %s of %s has the tag %s", field.Name, t, field.Tag))
			}
			fields = append(fields, fmt.Sprintf("%s:%s:%s", field.Name, name, field.Type))
			visit(field.Type, rows, seen)
		}
		rows[t.String()] = strings.Join(fields, "\t")
	case reflect.Pointer, reflect.Slice:
		visit(t.Elem(), rows, seen)
	case reflect.Map:
		visit(t.Key(), rows, seen)
		visit(t.Elem(), rows, seen)
		if t.PkgPath() != "" {
			rows[t.String()] = fmt.Sprintf("map[%s]%s", t.Key(), t.Elem())
		}
	default:
		if t.PkgPath() != "" {
			rows[t.String()] = t.Kind().String()
		}
	}
}

// templates are pod templates as an API server returns them.
var templates = []string{
	`{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"nginx:1.27","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler"}}`,
	`{"metadata":{"creationTimestamp":null},"spec":{"containers":null}}`,
	`{"metadata":{"labels":{},"annotations":{"b":"<&>","a":"ä"}},"spec":{"containers":[],"volumes":[{"name":"v","emptyDir":{}}]}}`,
	quantities("0", "1", "100m", "8", "2k", "1500m", "1000u", "5n", "3M", "12e3", "7E", "1e-3", "-5", "-20m"),
	quantities("1Gi", "8Mi", "16Mi", "512Mi", "3Ki", "10Ti", "-3Gi", "1023Ki"),
}

// quantities is a template with these quantities, as limits and as the size of a volume.
func quantities(all ...string) string {
	limits := map[string]string{}
	volumes := []map[string]any{}
	for at, quantity := range all {
		limits[fmt.Sprintf("r%02d", at)] = quantity
		volumes = append(volumes, map[string]any{"name": fmt.Sprint("v", at), "emptyDir": map[string]any{"sizeLimit": quantity}})
	}
	data, err := json.Marshal(map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "c", "resources": map[string]any{"limits": limits}}},
		"volumes":    volumes,
	}})
	if err != nil {
		fail(err.Error())
	}
	return string(data)
}

// full is a template with every field.
func full() string {
	var template corev1.PodTemplateSpec
	fill(reflect.ValueOf(&template).Elem(), "template")
	data, err := json.Marshal(template)
	if err != nil {
		fail(err.Error())
	}
	return string(data)
}

func fill(value reflect.Value, name string) {
	switch value.Interface().(type) {
	case resource.Quantity:
		value.Set(reflect.ValueOf(resource.MustParse("250m")))
		return
	case intstr.IntOrString:
		text := intstr.FromString("http")
		if len(name)%2 == 0 {
			text = intstr.FromInt32(8080)
		}
		value.Set(reflect.ValueOf(text))
		return
	case metav1.Time, []metav1.ManagedFieldsEntry:
		return
	}
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			if _, isTime := value.Field(i).Interface().(*metav1.Time); !isTime {
				fill(value.Field(i), value.Type().Field(i).Name)
			}
		}
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), name)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(value.Index(0), name)
	case reflect.Map:
		value.Set(reflect.MakeMap(value.Type()))
		for _, key := range []string{"b", "a"} {
			element := reflect.New(value.Type().Elem()).Elem()
			fill(element, key)
			value.SetMapIndex(reflect.ValueOf(key).Convert(value.Type().Key()), element)
		}
	case reflect.String:
		value.SetString(name)
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int32, reflect.Int64:
		value.SetInt(int64(len(name)))
	default:
		fail(fmt.Sprintf("%s is of kind %s", name, value.Kind()))
	}
}

// printHashes prints pod templates and their hashes: without a collision count, and with 0 and 7. A template is read as
// upstream reads it, by way of protobuf.
func printHashes() {
	for _, text := range append(templates, full()) {
		var sent, template corev1.PodTemplateSpec
		if err := json.Unmarshal([]byte(text), &sent); err != nil {
			fail(err.Error())
		}
		data, err := sent.Marshal()
		if err != nil {
			fail(err.Error())
		}
		if err := template.Unmarshal(data); err != nil {
			fail(err.Error())
		}
		if os.Getenv("PRINT") != "" {
			fmt.Println(dump.ForHash(template))
		}
		canonical, err := json.Marshal(sent)
		if err != nil {
			fail(err.Error())
		}
		zero, seven := int32(0), int32(7)
		fmt.Printf("%s\t%s\t%s\t%s\n", canonical, hash(template, nil), hash(template, &zero), hash(template, &seven))
	}
}

func hash(template corev1.PodTemplateSpec, collisions *int32) string {
	hasher := fnv.New32a()
	fmt.Fprint(hasher, dump.ForHash(template))
	if collisions != nil {
		bytes := make([]byte, 8)
		binary.LittleEndian.PutUint32(bytes, uint32(*collisions))
		hasher.Write(bytes)
	}
	return rand.SafeEncodeString(fmt.Sprint(hasher.Sum32()))
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(1)
}
