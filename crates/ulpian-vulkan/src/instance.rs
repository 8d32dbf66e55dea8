//! The Vulkan instance, and the validation layer's messages when it is asked for.
//!
//! One instance per opened device: they are cheap, and nothing is shared between devices that way.

use crate::loader;
use crate::options::Options;
use ash::vk;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ulpian_kernel::device::DeviceError;

const VALIDATION: &CStr = c"VK_LAYER_KHRONOS_validation";

static MESSAGES: AtomicUsize = AtomicUsize::new(0);

/// Held while instances and devices come and go: drivers and loaders are not all sound when several threads of one
/// process do that at once.
static LIFE: Mutex<()> = Mutex::new(());

pub(crate) fn life() -> MutexGuard<'static, ()> {
    LIFE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Warnings and errors of the validation layer in this process so far; each was also printed to standard error.
pub fn validation_messages() -> usize {
    MESSAGES.load(Ordering::SeqCst)
}

pub(crate) struct Instance {
    /// Keeps the loader's library open; never called again.
    _entry: ash::Entry,
    pub raw: ash::Instance,
    messenger: Option<(ash::ext::debug_utils::Instance, vk::DebugUtilsMessengerEXT)>,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").field("validated", &self.messenger.is_some()).finish_non_exhaustive()
    }
}

impl Instance {
    pub fn new(options: &Options) -> Result<Arc<Instance>, DeviceError> {
        let driver = |what: &str, e: vk::Result| DeviceError::Driver {
            device: "vulkan".into(),
            detail: format!("{what}: {e}; check the driver's installation with `vulkaninfo --summary`"),
        };
        let life = life();
        let entry = loader::open(options.loader.as_deref())?;
        // SAFETY: a plain query of the loader.
        let version = unsafe { entry.try_enumerate_instance_version() }
            .map_err(|e| driver("the loader does not tell its version", e))?
            .unwrap_or(vk::API_VERSION_1_0);
        if version < vk::API_VERSION_1_2 {
            return Err(DeviceError::NoLoader {
                loader: format!(
                    "the Vulkan loader is of version {}.{}, 1.2 or newer is needed",
                    vk::api_version_major(version),
                    vk::api_version_minor(version)
                ),
            });
        }
        let mut layers: Vec<*const c_char> = Vec::new();
        let mut extensions: Vec<*const c_char> = Vec::new();
        if options.validate {
            // SAFETY: a plain query of the loader.
            let offered = unsafe { entry.enumerate_instance_layer_properties() }
                .map_err(|e| driver("layers cannot be listed", e))?;
            if !offered.iter().any(|l| l.layer_name_as_c_str() == Ok(VALIDATION)) {
                return Err(DeviceError::Unsupported {
                    device: "vulkan".into(),
                    what: "validation layer".into(),
                    needed_by: "ULPIAN_VALIDATE=1".into(),
                    remedy: "install it (Debian and Ubuntu: `apt install vulkan-validationlayers`)".into(),
                });
            }
            layers.push(VALIDATION.as_ptr());
            extensions.push(ash::ext::debug_utils::NAME.as_ptr());
        }
        let app = vk::ApplicationInfo::default()
            .application_name(c"ulpian")
            .engine_name(c"ulpian")
            .api_version(version.min(vk::API_VERSION_1_3));
        let info = vk::InstanceCreateInfo::default()
            .application_info(&app)
            .enabled_layer_names(&layers)
            .enabled_extension_names(&extensions);
        // SAFETY: `info` and all it points to live until the call returns; layers and extensions were found present.
        let raw = unsafe { entry.create_instance(&info, None) }.map_err(|e| match e {
            vk::Result::ERROR_INCOMPATIBLE_DRIVER => DeviceError::NotFound {
                asked: "a Vulkan driver".into(),
                remedy: "install one (Debian and Ubuntu: `apt install mesa-vulkan-drivers`, or the GPU vendor's), see that VK_DRIVER_FILES names a file if it is set, or use `--device cpu`".into(),
            },
            e => driver("no Vulkan instance", e),
        })?;
        // A failure below drops the instance, which takes the lock itself.
        drop(life);
        let mut instance = Instance { _entry: entry, raw, messenger: None };
        if options.validate {
            instance.listen().map_err(|e| driver("no debug messenger", e))?;
        }
        Ok(Arc::new(instance))
    }

    fn listen(&mut self) -> Result<(), vk::Result> {
        let api = ash::ext::debug_utils::Instance::new(&self._entry, &self.raw);
        let info = vk::DebugUtilsMessengerCreateInfoEXT::default()
            .message_severity(
                vk::DebugUtilsMessageSeverityFlagsEXT::WARNING | vk::DebugUtilsMessageSeverityFlagsEXT::ERROR,
            )
            .message_type(
                vk::DebugUtilsMessageTypeFlagsEXT::GENERAL
                    | vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION
                    | vk::DebugUtilsMessageTypeFlagsEXT::PERFORMANCE,
            )
            .pfn_user_callback(Some(count_message));
        // SAFETY: the extension was enabled on this instance; the callback is a plain function.
        let raw = unsafe { api.create_debug_utils_messenger(&info, None)? };
        self.messenger = Some((api, raw));
        Ok(())
    }
}

unsafe extern "system" fn count_message(
    _severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _kind: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _user: *mut c_void,
) -> vk::Bool32 {
    MESSAGES.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the layer passes a valid structure, whose message, when present, is a C string.
    let text = unsafe { data.as_ref().and_then(|d| d.message_as_c_str()) };
    eprintln!("vulkan validation: {}", text.map_or("(no text)".into(), |t| t.to_string_lossy()));
    vk::FALSE
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _life = life();
        // SAFETY: everything made from this instance holds it by `Arc`, so nothing of it is left.
        unsafe {
            if let Some((api, raw)) = &self.messenger {
                api.destroy_debug_utils_messenger(*raw, None);
            }
            self.raw.destroy_instance(None);
        }
    }
}
