//! Physical devices: what there is, what each offers, and which queue and features ulpian takes of it.
//!
//! Features are asked for before use and only those that a shader of ours can use are enabled. Nothing here is
//! trusted about arithmetic: that is the self-test's business.

use crate::instance::Instance;
use crate::options::Options;
use ash::vk;
use std::ffi::CStr;
use std::fmt::Write;
use ulpian_kernel::device::DeviceError;

/// A device as the driver announces it, opened or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSummary {
    /// Its place in the driver's list: what [`crate::open`] takes.
    pub index: usize,
    /// `vulkan:INDEX`.
    pub id: String,
    /// The vendor's name of it.
    pub name: String,
    /// `discrete GPU`, `integrated GPU`, `virtual GPU`, `CPU` or `other`.
    pub kind: &'static str,
    /// Vulkan version, as `1.4.305`.
    pub api: String,
    /// Driver and version.
    pub driver: String,
    /// Bytes of device-local memory.
    pub memory_bytes: u64,
}

/// What the driver says of one device, in the terms the rest of the crate needs.
#[derive(Clone)]
pub(crate) struct Physical {
    pub raw: vk::PhysicalDevice,
    pub summary: DeviceSummary,
    pub api: u32,
    pub device_uuid: [u8; 16],
    pub driver_uuid: [u8; 16],
    pub driver_version: u32,
    pub queue_family: Option<u32>,
    pub families: Vec<vk::QueueFamilyProperties>,
    pub timestamp_period: f32,
    /// Nanoseconds per timestamp tick; None when the queue has no timestamps.
    pub timestamp_ns: Option<f64>,
    pub memory: vk::PhysicalDeviceMemoryProperties,
    /// Buffers can live in memory that the host maps at full speed.
    pub unified: bool,
    pub limits: Limits,
    pub features: Features,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Of one allocation; larger buffers are bound piece by piece where the device can.
    pub max_allocation_bytes: u64,
    pub max_buffer_bytes: u64,
    /// Of all buffers together that are bound piece by piece.
    pub sparse_bytes: u64,
    pub max_workgroup_invocations: u32,
    pub max_shared_bytes: u32,
    pub max_groups: [u32; 3],
    pub push_constant_bytes: u32,
    pub subgroup_size: u32,
    /// [`crate::spirv::Caps::many_registers`]. Vulkan does not tell; 255 a thread is NVIDIA's number in all generations.
    pub many_registers: bool,
}

/// PCI's number of the vendor.
const NVIDIA: u32 = 0x10de;

/// Offered features, of those that ulpian enables when they are there.
#[derive(Clone, Copy, Default)]
pub(crate) struct Features {
    pub buffer_address: bool,
    pub timeline: bool,
    /// Buffers can be bound piece by piece, by the queue in use.
    pub sparse: bool,
    pub int64: bool,
    pub float64: bool,
    pub storage16: bool,
    pub storage8: bool,
    pub full_subgroups: bool,
    /// `full_subgroups` comes from the extension, not from Vulkan 1.3.
    pub full_subgroups_ext: bool,
    /// The driver tells registers, stack and size of what it compiled.
    pub statistics: bool,
    pub subgroup_ops: u32,
    pub rte32: bool,
    pub rte64: bool,
    pub szinp32: bool,
    pub szinp64: bool,
}

/// Every device, in the driver's order.
pub(crate) fn enumerate(instance: &Instance) -> Result<Vec<Physical>, DeviceError> {
    // SAFETY: a plain query of a live instance.
    let found = unsafe { instance.raw.enumerate_physical_devices() }.map_err(|e| DeviceError::Driver {
        device: "vulkan".into(),
        detail: format!("devices cannot be listed: {e}; check the driver with `vulkaninfo --summary`"),
    })?;
    Ok(found.into_iter().enumerate().map(|(index, raw)| describe(instance, index, raw)).collect())
}

fn describe(instance: &Instance, index: usize, raw: vk::PhysicalDevice) -> Physical {
    let (vk12, vk13) = {
        // SAFETY: `raw` is of this instance; a plain query.
        let p = unsafe { instance.raw.get_physical_device_properties(raw) };
        (p.api_version >= vk::API_VERSION_1_2, p.api_version >= vk::API_VERSION_1_3)
    };
    let mut driver = vk::PhysicalDeviceDriverProperties::default();
    let mut ids = vk::PhysicalDeviceIDProperties::default();
    let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
    let mut floats = vk::PhysicalDeviceFloatControlsProperties::default();
    let mut maintenance3 = vk::PhysicalDeviceMaintenance3Properties::default();
    let mut maintenance4 = vk::PhysicalDeviceMaintenance4Properties::default();
    let mut properties = vk::PhysicalDeviceProperties2::default();
    if vk13 {
        properties = properties.push_next(&mut maintenance4);
    }
    if vk12 {
        properties = properties
            .push_next(&mut driver)
            .push_next(&mut ids)
            .push_next(&mut subgroup)
            .push_next(&mut floats)
            .push_next(&mut maintenance3);
    }
    // SAFETY: the chain holds structures of Vulkan 1.2 and 1.3, for a device of at least that version.
    unsafe { instance.raw.get_physical_device_properties2(raw, &mut properties) };
    let p = properties.properties;
    // SAFETY: plain queries of a live physical device.
    let (memory, families) = unsafe {
        (
            instance.raw.get_physical_device_memory_properties(raw),
            instance.raw.get_physical_device_queue_family_properties(raw),
        )
    };
    let queue_family = choose_queue(&families);
    let mut features = if vk12 { query_features(instance, raw, p.api_version) } else { Features::default() };
    features.subgroup_ops = subgroup.supported_operations.as_raw();
    features.rte32 = floats.shader_rounding_mode_rte_float32 != 0;
    features.rte64 = floats.shader_rounding_mode_rte_float64 != 0;
    features.szinp32 = floats.shader_signed_zero_inf_nan_preserve_float32 != 0;
    features.szinp64 = floats.shader_signed_zero_inf_nan_preserve_float64 != 0;
    // Modes of one width may only be asked for apart from the others where the driver says so.
    if floats.rounding_mode_independence == vk::ShaderFloatControlsIndependence::NONE
        && !(features.rte32 && features.rte64)
    {
        (features.rte32, features.rte64) = (false, false);
    }
    let memory_bytes =
        heaps(&memory).filter(|h| h.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL)).map(|h| h.size).max();
    let text = |s: Result<&CStr, std::ffi::FromBytesUntilNulError>| {
        s.map_or("?".into(), |s| s.to_string_lossy().into_owned())
    };
    let summary = DeviceSummary {
        index,
        id: format!("vulkan:{index}"),
        name: text(p.device_name_as_c_str()),
        kind: match p.device_type {
            vk::PhysicalDeviceType::DISCRETE_GPU => "discrete GPU",
            vk::PhysicalDeviceType::INTEGRATED_GPU => "integrated GPU",
            vk::PhysicalDeviceType::VIRTUAL_GPU => "virtual GPU",
            vk::PhysicalDeviceType::CPU => "CPU",
            _ => "other",
        },
        api: format!(
            "{}.{}.{}",
            vk::api_version_major(p.api_version),
            vk::api_version_minor(p.api_version),
            vk::api_version_patch(p.api_version)
        ),
        driver: format!("{} {}", text(driver.driver_name_as_c_str()), text(driver.driver_info_as_c_str()))
            .trim()
            .to_string(),
        memory_bytes: memory_bytes.unwrap_or(0),
    };
    let direct = vk::MemoryPropertyFlags::DEVICE_LOCAL
        | vk::MemoryPropertyFlags::HOST_VISIBLE
        | vk::MemoryPropertyFlags::HOST_COHERENT
        | vk::MemoryPropertyFlags::HOST_CACHED;
    let shares =
        matches!(p.device_type, vk::PhysicalDeviceType::INTEGRATED_GPU | vk::PhysicalDeviceType::CPU);
    let mut physical = Physical {
        raw,
        summary,
        api: p.api_version,
        device_uuid: ids.device_uuid,
        driver_uuid: ids.driver_uuid,
        driver_version: p.driver_version,
        queue_family: None,
        families,
        timestamp_period: p.limits.timestamp_period,
        timestamp_ns: None,
        unified: shares && types(&memory).any(|t| t.property_flags.contains(direct)),
        memory,
        limits: Limits {
            max_allocation_bytes: maintenance3.max_memory_allocation_size,
            max_buffer_bytes: match maintenance4.max_buffer_size {
                0 => u64::MAX,
                bytes => bytes,
            },
            sparse_bytes: p.limits.sparse_address_space_size,
            max_workgroup_invocations: p
                .limits
                .max_compute_work_group_invocations
                .min(p.limits.max_compute_work_group_size[0]),
            max_shared_bytes: p.limits.max_compute_shared_memory_size,
            max_groups: p.limits.max_compute_work_group_count,
            push_constant_bytes: p.limits.max_push_constants_size,
            subgroup_size: subgroup.subgroup_size,
            many_registers: p.vendor_id == NVIDIA,
        },
        features,
    };
    if let Some(family) = queue_family {
        physical.use_family(family);
    }
    physical
}

fn heaps(m: &vk::PhysicalDeviceMemoryProperties) -> impl Iterator<Item = &vk::MemoryHeap> {
    m.memory_heaps[..m.memory_heap_count as usize].iter()
}

fn types(m: &vk::PhysicalDeviceMemoryProperties) -> impl Iterator<Item = &vk::MemoryType> {
    m.memory_types[..m.memory_type_count as usize].iter()
}

/// A family that does graphics too is where drivers put their main engine; a compute-only one is taken for want of it.
fn choose_queue(families: &[vk::QueueFamilyProperties]) -> Option<u32> {
    let with = |want: vk::QueueFlags| {
        families.iter().position(|f| f.queue_count > 0 && f.queue_flags.contains(want))
    };
    with(vk::QueueFlags::COMPUTE | vk::QueueFlags::GRAPHICS)
        .or_else(|| with(vk::QueueFlags::COMPUTE))
        .map(|i| i as u32)
}

fn query_features(instance: &Instance, raw: vk::PhysicalDevice, api: u32) -> Features {
    // SAFETY: a plain query of a live physical device.
    let extensions = unsafe { instance.raw.enumerate_device_extension_properties(raw) }.unwrap_or_default();
    let has = |name: &CStr| extensions.iter().any(|e| e.extension_name_as_c_str() == Ok(name));
    let core13 = api >= vk::API_VERSION_1_3;
    let size_control = core13 || has(ash::ext::subgroup_size_control::NAME);
    let mut f11 = vk::PhysicalDeviceVulkan11Features::default();
    let mut f12 = vk::PhysicalDeviceVulkan12Features::default();
    let mut size = vk::PhysicalDeviceSubgroupSizeControlFeatures::default();
    let executables = has(ash::khr::pipeline_executable_properties::NAME);
    let mut statistics = vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default();
    let mut features = vk::PhysicalDeviceFeatures2::default().push_next(&mut f11).push_next(&mut f12);
    if size_control {
        features = features.push_next(&mut size);
    }
    if executables {
        features = features.push_next(&mut statistics);
    }
    // SAFETY: the chain holds structures that this device's version or extensions define.
    unsafe { instance.raw.get_physical_device_features2(raw, &mut features) };
    let f = features.features;
    Features {
        buffer_address: f12.buffer_device_address != 0,
        timeline: f12.timeline_semaphore != 0,
        sparse: f.sparse_binding != 0,
        int64: f.shader_int64 != 0,
        float64: f.shader_float64 != 0,
        storage16: f11.storage_buffer16_bit_access != 0,
        storage8: f12.storage_buffer8_bit_access != 0,
        full_subgroups: size_control && size.compute_full_subgroups != 0,
        full_subgroups_ext: !core13,
        statistics: executables && statistics.pipeline_executable_info != 0,
        ..Features::default()
    }
}

impl Physical {
    pub fn id(&self) -> &str {
        &self.summary.id
    }

    /// Takes note of a queue family and of what it can do.
    fn use_family(&mut self, family: u32) {
        let Some(f) = self.families.get(family as usize) else { return };
        self.queue_family = Some(family);
        self.timestamp_ns = (f.timestamp_valid_bits > 0 && self.timestamp_period > 0.0)
            .then(|| f64::from(self.timestamp_period));
        self.features.sparse &= f.queue_flags.contains(vk::QueueFlags::SPARSE_BINDING);
    }

    /// What options ask for in place of the driver's own.
    pub fn limit(&mut self, options: &Options) -> Result<(), DeviceError> {
        if let Some(bytes) = options.largest_allocation {
            self.limits.max_allocation_bytes = self.limits.max_allocation_bytes.min(bytes);
        }
        if let Some(invocations) = options.largest_group {
            self.limits.max_workgroup_invocations = self.limits.max_workgroup_invocations.min(invocations);
        }
        if let Some(many) = options.many_registers {
            self.limits.many_registers = many;
        }
        let Some(family) = options.queue_family else { return Ok(()) };
        match self.families.get(family as usize) {
            Some(f) if f.queue_count > 0 && f.queue_flags.contains(vk::QueueFlags::COMPUTE) => {
                self.use_family(family);
                Ok(())
            }
            _ => Err(DeviceError::NotFound {
                asked: format!("queue family {family} of {} that computes", self.id()),
                remedy: "leave the choice to the device".into(),
            }),
        }
    }

    /// The largest buffer that one allocation surely backs: some drivers round sizes up.
    pub fn in_one_piece(&self) -> u64 {
        self.limits.max_allocation_bytes.saturating_sub(256)
    }

    /// The largest buffer that can be had at all.
    pub fn largest_buffer(&self) -> u64 {
        let l = &self.limits;
        let pieces = if self.features.sparse { l.sparse_bytes } else { 0 };
        self.in_one_piece().max(pieces.min(self.summary.memory_bytes)).min(l.max_buffer_bytes)
    }

    /// What Vulkan itself must offer before arithmetic is even looked at.
    pub fn check(&self) -> Result<u32, DeviceError> {
        let refuse = |reason: String| DeviceError::Refused { device: self.id().into(), reason };
        if self.api < vk::API_VERSION_1_2 {
            return Err(refuse(format!(
                "its Vulkan is {}, 1.2 or newer is needed; update the driver",
                self.summary.api
            )));
        }
        for (there, name) in [
            (self.features.buffer_address, "bufferDeviceAddress"),
            (self.features.timeline, "timelineSemaphore"),
        ] {
            if !there {
                return Err(refuse(format!(
                    "the driver does not offer {name}; update it or use another device"
                )));
            }
        }
        self.queue_family.ok_or_else(|| refuse("it has no compute queue".into()))
    }

    /// Makes the logical device with one queue.
    pub fn create(&self, instance: &Instance) -> Result<(ash::Device, vk::Queue, u32), DeviceError> {
        let family = self.check()?;
        let f = &self.features;
        let priorities = [1.0f32];
        let queues =
            [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&priorities)];
        let core = vk::PhysicalDeviceFeatures::default()
            .shader_int64(f.int64)
            .shader_float64(f.float64)
            .sparse_binding(f.sparse);
        let mut f11 = vk::PhysicalDeviceVulkan11Features::default().storage_buffer16_bit_access(f.storage16);
        let mut f12 = vk::PhysicalDeviceVulkan12Features::default()
            .buffer_device_address(true)
            .timeline_semaphore(true)
            .storage_buffer8_bit_access(f.storage8);
        let mut size = vk::PhysicalDeviceSubgroupSizeControlFeatures::default()
            .compute_full_subgroups(true)
            .subgroup_size_control(true);
        let mut extensions = Vec::new();
        let mut info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_features(&core)
            .push_next(&mut f11)
            .push_next(&mut f12);
        if f.full_subgroups {
            info = info.push_next(&mut size);
            if f.full_subgroups_ext {
                extensions.push(ash::ext::subgroup_size_control::NAME.as_ptr());
            }
        }
        let mut statistics = vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default()
            .pipeline_executable_info(true);
        if f.statistics {
            info = info.push_next(&mut statistics);
            extensions.push(ash::khr::pipeline_executable_properties::NAME.as_ptr());
        }
        info = info.enabled_extension_names(&extensions);
        // SAFETY: queue family, features and extensions were all found offered; `info` outlives the call.
        let raw = unsafe { instance.raw.create_device(self.raw, &info, None) }.map_err(|e| {
            let what = "the device cannot be opened (is another program holding it?)";
            crate::context::refusal(self.id().into(), what, e)
        })?;
        // SAFETY: family and queue 0 were asked for above.
        let queue = unsafe { raw.get_device_queue(family, 0) };
        Ok((raw, queue, family))
    }

    /// The first memory type in `bits` with all of one of `wishes`, the earliest wish first.
    pub fn memory_type(&self, bits: u32, wishes: &[vk::MemoryPropertyFlags]) -> Option<u32> {
        wishes.iter().find_map(|wish| {
            types(&self.memory)
                .position(|t| t.property_flags.contains(*wish))
                .into_iter()
                .chain(0..self.memory.memory_type_count as usize)
                .find(|i| bits >> i & 1 != 0 && self.memory.memory_types[*i].property_flags.contains(*wish))
                .map(|i| i as u32)
        })
    }

    /// Names this device, driver and version on disk.
    pub fn fingerprint(&self) -> String {
        let mut s = String::new();
        for b in self.device_uuid.iter().chain(&self.driver_uuid) {
            let _ = write!(s, "{b:02x}");
        }
        let _ = write!(s, "-{:x}-{}-{}", self.driver_version, self.summary.api, self.summary.driver);
        s
    }
}
