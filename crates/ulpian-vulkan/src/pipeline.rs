//! Compute pipelines, one per kernel, made once and kept.
//!
//! SPIR-V comes from the user's replacement folder, from the disk cache, or from the writer, in this order. The
//! driver's own pipeline cache is loaded at open and saved when the device is dropped.

use crate::cache::Cache;
use crate::context::Context;
use crate::dump;
use crate::spirv::{self, Caps, Shader, writer_version};
use crate::tables::Key;
use ash::vk;
use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use ulpian_kernel::device::{DeviceError, Prepared};
use ulpian_kernel::ir::{Block, Op};
use ulpian_num::{Dtype, Func};

/// Push constants of every pipeline: what Vulkan guarantees.
pub(crate) const PUSH_BYTES: u32 = 128;

/// A kernel ready to be dispatched.
#[derive(Debug)]
pub(crate) struct Pipeline {
    ctx: Arc<Context>,
    pub raw: vk::Pipeline,
    pub layout: vk::PipelineLayout,
    pub name: String,
    pub hash: [u8; 32],
    /// Trip counts come from parameters.
    pub loops: bool,
    /// Addresses and parameters do not fit the push constants, which hold the address of a block with them.
    pub indirect: bool,
    /// Scratch memory for each program of a dispatch; its address is the last.
    pub scratch_bytes: u32,
    /// Tables that it reads; their addresses follow the buffers'.
    pub tables: Vec<Key>,
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        // SAFETY: pipelines are dropped with the device's table, after the queue is idle.
        unsafe { self.ctx.raw.destroy_pipeline(self.raw, None) };
    }
}

/// All pipelines of a device.
#[derive(Debug)]
pub(crate) struct Pipelines {
    ctx: Arc<Context>,
    layout: vk::PipelineLayout,
    driver_cache: vk::PipelineCache,
    /// The driver made something that its saved cache does not hold.
    grown: bool,
    cache: Cache,
    dump: Option<PathBuf>,
    replacements: Option<PathBuf>,
    made: HashMap<[u8; 32], Arc<Pipeline>>,
}

fn has_loops(block: &Block) -> bool {
    block.insts.iter().any(|i| match &i.op {
        Op::Loop { .. } | Op::While { .. } | Op::Contract(_) => true,
        Op::If { body, .. } => has_loops(body),
        _ => false,
    })
}

impl Pipelines {
    pub fn new(
        ctx: Arc<Context>,
        cache: Cache,
        dump: Option<PathBuf>,
        replacements: Option<PathBuf>,
    ) -> Result<Pipelines, DeviceError> {
        let range =
            [vk::PushConstantRange::default().stage_flags(vk::ShaderStageFlags::COMPUTE).size(PUSH_BYTES)];
        let info = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(&range);
        // SAFETY: a valid description; destroyed in `Drop`.
        let layout = unsafe { ctx.raw.create_pipeline_layout(&info, None) }
            .map_err(|e| ctx.error("making a pipeline layout", e))?;
        let saved = cache.load("driver", b"").unwrap_or_default();
        let info = vk::PipelineCacheCreateInfo::default().initial_data(&saved);
        // SAFETY: the data passed our checksum, and drivers check their own header.
        let driver_cache = unsafe {
            ctx.raw
                .create_pipeline_cache(&info, None)
                .or_else(|_| ctx.raw.create_pipeline_cache(&vk::PipelineCacheCreateInfo::default(), None))
        };
        let driver_cache = driver_cache.unwrap_or(vk::PipelineCache::null());
        Ok(Pipelines {
            ctx,
            layout,
            driver_cache,
            grown: false,
            cache,
            dump,
            replacements,
            made: HashMap::new(),
        })
    }

    /// The pipeline of a kernel.
    pub fn get(&mut self, kernel: &Prepared, caps: &Caps) -> Result<Arc<Pipeline>, DeviceError> {
        if let Some(p) = self.made.get(&kernel.hash) {
            return Ok(p.clone());
        }
        self.ctx.alive()?;
        let shader = self.shader(kernel, caps)?;
        self.check(kernel, &shader, caps)?;
        let raw = self.create(&kernel.kernel.name, &shader.words, shader.workgroup)?;
        let keep = kernel.kernel.keep_subnormals;
        let tables = shader.tables.iter().map(|&(func, to)| Key { func, to, keep }).collect();
        let made = Arc::new(Pipeline {
            ctx: self.ctx.clone(),
            raw,
            layout: self.layout,
            name: kernel.kernel.name.clone(),
            hash: kernel.hash,
            loops: has_loops(&kernel.kernel.body),
            indirect: shader.indirect,
            scratch_bytes: shader.scratch_bytes_per_program,
            tables,
        });
        if let Some(folder) = &self.dump {
            dump::write(folder, kernel, &shader.words, &self.statistics(raw))
                .map_err(|e| self.fail(kernel, format!("cannot be dumped to {}: {e}", folder.display())))?;
        }
        self.made.insert(kernel.hash, made.clone());
        Ok(made)
    }

    /// A pipeline of a module that no kernel stands behind; not kept.
    pub fn raw(&mut self, name: &str, words: &[u32], workgroup: u32) -> Result<Pipeline, DeviceError> {
        Ok(Pipeline {
            ctx: self.ctx.clone(),
            raw: self.create(name, words, workgroup)?,
            layout: self.layout,
            name: name.into(),
            hash: [0; 32],
            loops: false,
            indirect: false,
            scratch_bytes: 0,
            tables: Vec::new(),
        })
    }

    /// Forgets kernels made under other caps.
    pub fn forget(&mut self) {
        self.made.clear();
    }

    fn fail(&self, kernel: &Prepared, detail: String) -> DeviceError {
        DeviceError::Kernel { device: self.ctx.id(), kernel: kernel.kernel.name.clone(), detail }
    }

    fn shader(&mut self, kernel: &Prepared, caps: &Caps) -> Result<Shader, DeviceError> {
        let key = format!("{}|{caps:?}|{}", ulpian_kernel::dump::hex(&kernel.hash), writer_version());
        let mut shader = match self.cache.load("spv", key.as_bytes()).and_then(|b| decode(&b)) {
            Some(shader) => shader,
            None => {
                let shader =
                    spirv::write(&kernel.kernel, caps).map_err(|e| self.fail(kernel, e.to_string()))?;
                // Every shader that a test's device writes.
                if cfg!(debug_assertions) {
                    spirv::audit(&shader.words, caps)
                        .map_err(|e| self.fail(kernel, format!("its shader breaks a rule: {e}")))?;
                }
                self.cache.store("spv", key.as_bytes(), &encode(&shader));
                shader
            }
        };
        // A replacement obeys the written shader's interface, but may choose its own group size.
        if let Some(folder) = &self.replacements
            && let Some(words) = dump::replacement(folder, &kernel.hash).map_err(|e| self.fail(kernel, e))?
        {
            shader.workgroup = dump::local_size(&words)
                .ok_or_else(|| self.fail(kernel, "its replacement declares no LocalSize".into()))?;
            shader.words = words;
            eprintln!("ulpian: kernel {} is replaced from {}", kernel.kernel.name, folder.display());
        }
        Ok(shader)
    }

    fn check(&self, kernel: &Prepared, shader: &Shader, caps: &Caps) -> Result<(), DeviceError> {
        if shader.workgroup == 0 || shader.workgroup > caps.max_workgroup_invocations {
            let detail = format!(
                "needs {} invocations in a group, the device has {}",
                shader.workgroup, caps.max_workgroup_invocations
            );
            return Err(self.fail(kernel, detail));
        }
        if shader.shared_bytes > caps.max_shared_bytes {
            let detail = format!(
                "needs {} bytes of shared memory, the device has {}; record it with smaller tiles",
                shader.shared_bytes, caps.max_shared_bytes
            );
            return Err(self.fail(kernel, detail));
        }
        Ok(())
    }

    fn create(&mut self, name: &str, words: &[u32], workgroup: u32) -> Result<vk::Pipeline, DeviceError> {
        let info = vk::ShaderModuleCreateInfo::default().code(words);
        // SAFETY: the words are our writer's, or a module that the user vouches for by putting it in place.
        let module = unsafe { self.ctx.raw.create_shader_module(&info, None) }
            .map_err(|e| self.ctx.error("making a shader module", e))?;
        let features = &self.ctx.physical.features;
        let full = features.full_subgroups
            && workgroup.is_multiple_of(self.ctx.physical.limits.subgroup_size.max(1));
        let flags = if full {
            vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS
        } else {
            vk::PipelineShaderStageCreateFlags::empty()
        };
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(c"main")
            .flags(flags);
        let wanted = if self.dump.is_some() && self.ctx.statistics.is_some() {
            vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR
        } else {
            vk::PipelineCreateFlags::empty()
        };
        let info = [vk::ComputePipelineCreateInfo::default().flags(wanted).stage(stage).layout(self.layout)];
        // SAFETY: module and layout are live; the module may go once the pipeline is made.
        let made = unsafe {
            let made = self.ctx.raw.create_compute_pipelines(self.driver_cache, &info, None);
            self.ctx.raw.destroy_shader_module(module, None);
            made
        };
        self.grown = true;
        match made {
            Ok(p) => Ok(p[0]),
            // Nothing is wrong with the shader.
            Err((
                _,
                e @ (vk::Result::ERROR_DEVICE_LOST
                | vk::Result::ERROR_OUT_OF_DEVICE_MEMORY
                | vk::Result::ERROR_OUT_OF_HOST_MEMORY),
            )) => Err(self.ctx.error("making a pipeline", e)),
            Err((_, e)) => Err(DeviceError::Kernel {
                device: self.ctx.id(),
                kernel: name.into(),
                detail: format!(
                    "the driver does not take its shader ({e}); dump it with ULPIAN_DUMP=DIR and report it"
                ),
            }),
        }
    }

    /// What the driver tells of a pipeline made with `CAPTURE_STATISTICS`, a line each; empty where it tells nothing.
    fn statistics(&self, pipeline: vk::Pipeline) -> String {
        let mut text = String::new();
        let Some(api) = &self.ctx.statistics else { return text };
        let info = vk::PipelineInfoKHR::default().pipeline(pipeline);
        // SAFETY: a live pipeline of this device.
        let executables = unsafe { api.get_pipeline_executable_properties(&info) }.unwrap_or_default();
        for (k, _) in executables.iter().enumerate() {
            let info = vk::PipelineExecutableInfoKHR::default().pipeline(pipeline).executable_index(k as u32);
            // SAFETY: as above; the index is below the count, and the pipeline was made to be asked.
            let found = unsafe { api.get_pipeline_executable_statistics(&info) }.unwrap_or_default();
            for s in &found {
                let name = s.name_as_c_str().unwrap_or_default().to_string_lossy();
                // SAFETY: `format` says which member the driver wrote.
                let value = unsafe {
                    match s.format {
                        vk::PipelineExecutableStatisticFormatKHR::BOOL32 => (s.value.b32 != 0).to_string(),
                        vk::PipelineExecutableStatisticFormatKHR::INT64 => s.value.i64.to_string(),
                        vk::PipelineExecutableStatisticFormatKHR::UINT64 => s.value.u64.to_string(),
                        _ => s.value.f64.to_string(),
                    }
                };
                let _ = writeln!(text, "{name}: {value}");
            }
        }
        text
    }
}

impl Drop for Pipelines {
    fn drop(&mut self) {
        self.ctx.wait_idle();
        self.made.clear();
        // SAFETY: the queue was dropped or is idle, and no pipeline is made any more.
        unsafe {
            if self.grown
                && !self.ctx.is_lost()
                && self.driver_cache != vk::PipelineCache::null()
                && let Ok(data) = self.ctx.raw.get_pipeline_cache_data(self.driver_cache)
            {
                self.cache.store("driver", b"", &data);
            }
            self.ctx.raw.destroy_pipeline_cache(self.driver_cache, None);
            self.ctx.raw.destroy_pipeline_layout(self.layout, None);
        }
    }
}

fn encode(s: &Shader) -> Vec<u8> {
    let tables: Vec<u32> =
        s.tables.iter().map(|&(f, d)| u32::from(f as u8) << 1 | u32::from(d == Dtype::F16)).collect();
    let head = [
        s.workgroup,
        s.shared_bytes,
        s.scratch_bytes_per_program,
        s.push_bytes,
        u32::from(s.indirect),
        tables.len() as u32,
    ];
    head.iter().chain(&tables).chain(&s.words).flat_map(|w| w.to_le_bytes()).collect()
}

fn decode(bytes: &[u8]) -> Option<Shader> {
    let (chunks, rest) = bytes.as_chunks::<4>();
    let all: Vec<u32> = chunks.iter().map(|c| u32::from_le_bytes(*c)).collect();
    let (&[workgroup, shared_bytes, scratch_bytes_per_program, push_bytes, indirect, tables], words) =
        all.split_first_chunk::<6>()?;
    let (tables, words) = words.split_at_checked(tables as usize)?;
    let table = |&t: &u32| {
        let func = Func::ALL.iter().find(|&&f| u32::from(f as u8) == t >> 1)?;
        Some((*func, if t & 1 == 1 { Dtype::F16 } else { Dtype::Bf16 }))
    };
    let tables = tables.iter().map(table).collect::<Option<Vec<_>>>()?;
    (rest.is_empty() && words.first() == Some(&0x0723_0203)).then(|| Shader {
        words: words.to_vec(),
        workgroup,
        shared_bytes,
        scratch_bytes_per_program,
        tables,
        push_bytes,
        indirect: indirect != 0,
    })
}
