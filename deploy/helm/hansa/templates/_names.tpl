{{/* What is everything called? */}}

{{- define "hansa.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* 52 letters: a controller adds a hash of eleven to the names of its pods. */}}
{{- define "hansa.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "hansa.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "hansa.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What is the cluster's own needs a name that no other namespace has. */}}
{{- define "hansa.clusterWide" -}}
{{- printf "hansa:%s:%s" .Release.Namespace (include "hansa.fullname" .) -}}
{{- end -}}

{{- define "hansa.lookRole" -}}
{{- printf "%s:look" (include "hansa.clusterWide" .) -}}
{{- end -}}

{{/* The rights in a user's namespace, which the manager binds to itself. */}}
{{- define "hansa.usersRole" -}}
{{- printf "%s:users" (include "hansa.clusterWide" .) -}}
{{- end -}}

{{- define "hansa.admission" -}}
{{- printf "hansa-%s-%s" .Release.Namespace (include "hansa.fullname" .) -}}
{{- end -}}

{{/* The cluster's id as the manager writes it into labels. */}}
{{- define "hansa.clusterLabel" -}}
{{- $id := default (default .Release.Name .Values.cluster.id) (default (dict) .Values.settings.cluster).id -}}
{{- regexReplaceAll "[^A-Za-z0-9._-]+" $id "-" | trunc 63 | trimAll "-._" -}}
{{- end -}}

{{- define "hansa.servicesNamespace" -}}
{{- default "oscar-svc" (default (dict) .Values.settings.cluster).services_namespace -}}
{{- end -}}

{{/* Those in which users' pods run, as JSON; none where the manager makes them. */}}
{{- define "hansa.namespaces" -}}
{{- if ne .Values.kubernetes.reach "given" -}}
[]
{{- else -}}
{{- default (list (include "hansa.servicesNamespace" .)) .Values.kubernetes.namespaces | toJson -}}
{{- end -}}
{{- end -}}

{{- define "hansa.selector" -}}
app.kubernetes.io/name: {{ include "hansa.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "hansa.labels" -}}
{{ include "hansa.selector" . }}
app.kubernetes.io/component: {{ .Values.role }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "hansa.account" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else if .Values.serviceAccount.create -}}
{{- include "hansa.fullname" . -}}
{{- else -}}
default
{{- end -}}
{{- end -}}

{{- define "hansa.secret" -}}
{{- default (include "hansa.fullname" .) .Values.existingSecret -}}
{{- end -}}

{{- define "hansa.claim" -}}
{{- default (printf "%s-data" (include "hansa.fullname" .)) .Values.persistence.existingClaim -}}
{{- end -}}

{{- define "hansa.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Inside the cluster. The short form works also where the cluster's domain is not cluster.local. */}}
{{- define "hansa.host" -}}
{{- printf "%s.%s.svc" (include "hansa.fullname" .) .Release.Namespace -}}
{{- end -}}

{{/* "true" or "": which of the two roles does this process have? */}}
{{- define "hansa.isManager" -}}{{ if ne .Values.role "hub" }}true{{ end }}{{- end -}}
{{- define "hansa.isHub" -}}{{ if ne .Values.role "manager" }}true{{ end }}{{- end -}}
{{- define "hansa.hasStore" -}}
{{ if and (ne .Values.role "hub") (eq .Values.storage.kind "embedded") }}true{{ end }}
{{- end -}}
{{/* State that no pod holds: then several can share it. */}}
{{- define "hansa.isShared" -}}
{{- $outside := and (not .Values.persistence.enabled) (eq .Values.database.kind "postgresql") -}}
{{- $store := or (eq .Values.role "hub") (ne .Values.storage.kind "embedded") -}}
{{ if and $outside $store (ne .Values.role "both") }}true{{ end }}
{{- end -}}
{{/* A hub's key that would be lost with the pod comes from the Secret; a manager's own is kept in Kubernetes by itself. */}}
{{- define "hansa.keyInSecret" -}}
{{ if and (include "hansa.isHub" .) (not .Values.persistence.enabled) (eq .Values.database.kind "postgresql") }}true{{ end }}
{{- end -}}
{{- define "hansa.issuersInSecret" -}}
{{- $found := .Values.oidc.fromSecret -}}
{{- range .Values.oidc.issuers }}{{ if .client_secret }}{{ $found = true }}{{ end }}{{ end -}}
{{ if $found }}true{{ end }}
{{- end -}}
