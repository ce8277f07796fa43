{{/* What may the manager do? The same as src/hansa/drivers/kubernetes/rights.py and docs/reference/kubernetes-rights.md. */}}

{{- define "hansa.rights.look" -}}
# What there is: how much jobs may use, and what a federation is told.
- apiGroups: [""]
  resources: [nodes]
  verbs: [list]
# How busy nodes really are, where it is measured.
- apiGroups: [metrics.k8s.io]
  resources: [nodes]
  verbs: [list]
# Where the API server is, which users' pods must not call.
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  resourceNames: [kubernetes]
  verbs: [get]
{{- end -}}

{{- define "hansa.rights.cluster" -}}
# Users get namespaces of their own, marked so.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, create, patch]
{{- end -}}

{{- define "hansa.rights.bind" -}}
# In which of them the manager has rights, and needs them.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list]
# The manager comes to its rights in a namespace that it made.
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings]
  verbs: [get, create]
# That one role and no other.
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles]
  resourceNames: [{{ include "hansa.usersRole" . | quote }}]
  verbs: [bind]
{{- end -}}

{{- define "hansa.rights.made" -}}
# A user's quota holds in Kubernetes, too.
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [create, patch, delete]
# What a container counts that says nothing.
- apiGroups: [""]
  resources: [limitranges]
  verbs: [create, patch, delete]
# Users' jobs stand in line for Kueue, with `kubernetes.queue`.
- apiGroups: [kueue.x-k8s.io]
  resources: [localqueues]
  verbs: [create, patch]
{{- end -}}

{{- define "hansa.rights.users" -}}
# A job's call, keys and script; a service's variables; they own what is made of them.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create, patch, delete]
# The definition of every service, as OSCAR's tools look for it.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch, delete]
# Warm workers are pods; how jobs and services are; an end that comes soon for a job that is cancelled.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, create, delete]
# What jobs and services print.
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
# Other pods find an exposed service by its name.
- apiGroups: [""]
  resources: [services]
  verbs: [create, patch, delete]
# Users' volumes.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, create, patch, delete]
# Why a user's volume is not there yet.
- apiGroups: [""]
  resources: [events]
  verbs: [list]
# Jobs; one that is late is ended.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch]
# Exposed services: begun, scaled, restarted, removed.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list, watch, create, patch, delete]
# Exposed services scale between their bounds.
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [create, patch, delete]
# Users' pods are kept apart, and from what they must not call.
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, update, delete]
# A way to exposed services that does not pass the manager, with `kubernetes.route`.
- apiGroups: [networking.k8s.io]
  resources: [ingresses]
  verbs: [create, patch, delete]
# The same with the Gateway API.
- apiGroups: [gateway.networking.k8s.io]
  resources: [httproutes]
  verbs: [create, patch, delete]
{{- end -}}

{{- define "hansa.rights.own" -}}
# What no pod of a user may mount: tokens and keys of services.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create, patch, delete]
# One of several managers works at a time.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
{{- end -}}
