package builders

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// DefaultedLabel is one that a Pod of DefaultedPodSpec should have: its rules of placement name it in matchLabelKeys.
const DefaultedLabel = "app"

// DefaultedPodSpec leaves out, wherever it can, what the API server then writes into a Pod: each default of v1.30 to v1.37
// but those of fields that not all of them have. One volume has two mounts, which its name does not tell apart.
func DefaultedPodSpec(image string) corev1.PodSpec {
	container := corev1.Container{
		Name: "c", Image: image,
		Ports: []corev1.ContainerPort{{ContainerPort: 8080}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP}},
		Env: []corev1.EnvVar{
			{Name: "NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}},
		},
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("64Mi"),
		}},
		LivenessProbe:  &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 8080}}},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080)}}},
		StartupProbe:   &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}},
		Lifecycle: &corev1.Lifecycle{
			PostStart: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080)}},
			PreStop:   &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"stop"}}},
		},
		SecurityContext: &corev1.SecurityContext{RunAsUser: ptr.To(int64(1000))},
		VolumeMounts:    []corev1.VolumeMount{{Name: "empty", MountPath: "/data"}, {Name: "empty", MountPath: "/work", SubPath: "work"}},
	}
	return corev1.PodSpec{
		InitContainers:            []corev1.Container{{Name: "i", Image: image}},
		Containers:                []corev1.Container{container},
		Volumes:                   defaultedVolumes(),
		DeprecatedServiceAccount:  "builder",
		Tolerations:               []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}},
		TopologySpreadConstraints: defaultedSpread(),
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{
				TopologyKey: corev1.LabelTopologyZone, LabelSelector: notAlone(), MatchLabelKeys: []string{DefaultedLabel},
			}}},
		}},
	}
}

func defaultedVolumes() []corev1.Volume {
	named := func(name string, source corev1.VolumeSource) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: source}
	}
	name := []corev1.DownwardAPIVolumeFile{{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}
	claim := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	return []corev1.Volume{
		named("empty", corev1.VolumeSource{}),
		named("host", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}}),
		named("secret", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "a"}}),
		named("config", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}}}),
		named("downward", corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: name}}),
		named("projected", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}, {DownwardAPI: &corev1.DownwardAPIProjection{Items: name}},
		}}}),
		named("ephemeral", corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim}}}),
		named("iscsi", corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "10.0.0.1:3260", IQN: "iqn.2001-04.com.example:storage.1"}}),
		named("rbd", corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{CephMonitors: []string{"10.0.0.1:6789"}, RBDImage: "a"}}),
		named("azure", corev1.VolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: "a", DataDiskURI: "https://example.com/a.vhd"}}),
		named("scaleio", corev1.VolumeSource{ScaleIO: &corev1.ScaleIOVolumeSource{
			Gateway: "https://example.com", System: "a", VolumeName: "a", SecretRef: &corev1.LocalObjectReference{Name: "a"},
		}}),
	}
}

func defaultedSpread() []corev1.TopologySpreadConstraint {
	return []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: notAlone(), MatchLabelKeys: []string{DefaultedLabel},
	}}
}

func notAlone() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"role": "sandbox"}}
}
