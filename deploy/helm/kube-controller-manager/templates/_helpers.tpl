{{- define "kcm.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* The configuration file. */}}
{{- define "kcm.config" -}}
{{- $generic := dict "controllers" .Values.controllers "leaderElection" (dict "resourceName" .Release.Name "resourceNamespace" .Release.Namespace) }}
{{- $config := dict "generic" $generic "logging" .Values.logging }}
{{- $head := dict "apiVersion" "kubecontrollermanager.config.k8s.io/v1alpha1" "kind" "KubeControllerManagerConfiguration" }}
{{- toYaml (merge $head (mergeOverwrite $config .Values.config)) }}
{{- end }}
