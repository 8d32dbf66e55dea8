//! The SPIR-V assembler: ids, sections in the specification's order, and one copy of each type and constant.
//!
//! Nothing here knows tiles or devices. Function bodies are written into a [`Function`] and appended when closed.

use std::collections::{BTreeSet, HashMap};

/// A SPIR-V result id.
pub type Id = u32;

/// Opcodes used by the writer (SPIR-V 1.5, section 3.37).
pub mod op {
    macro_rules! opcodes {
        ($($name:ident = $code:literal),* $(,)?) => { $(pub const $name: u16 = $code;)* };
    }
    opcodes! {
        UNDEF = 1, EXTENSION = 10, EXT_INST_IMPORT = 11, EXT_INST = 12, MEMORY_MODEL = 14, ENTRY_POINT = 15,
        EXECUTION_MODE = 16, CAPABILITY = 17, TYPE_VOID = 19, TYPE_BOOL = 20, TYPE_INT = 21, TYPE_FLOAT = 22,
        TYPE_VECTOR = 23, TYPE_ARRAY = 28, TYPE_RUNTIME_ARRAY = 29, TYPE_STRUCT = 30, TYPE_POINTER = 32,
        TYPE_FUNCTION = 33, CONSTANT_TRUE = 41, CONSTANT_FALSE = 42, CONSTANT = 43, CONSTANT_COMPOSITE = 44,
        FUNCTION = 54, FUNCTION_PARAMETER = 55, FUNCTION_END = 56, FUNCTION_CALL = 57, VARIABLE = 59, LOAD = 61,
        STORE = 62, ACCESS_CHAIN = 65, DECORATE = 71, MEMBER_DECORATE = 72, COMPOSITE_CONSTRUCT = 80,
        COMPOSITE_EXTRACT = 81, CONVERT_F_TO_U = 109, CONVERT_F_TO_S = 110, CONVERT_S_TO_F = 111,
        CONVERT_U_TO_F = 112, U_CONVERT = 113, S_CONVERT = 114, F_CONVERT = 115, CONVERT_U_TO_PTR = 120, BITCAST = 124, S_NEGATE = 126,
        F_NEGATE = 127, I_ADD = 128, F_ADD = 129, I_SUB = 130, F_SUB = 131, I_MUL = 132, F_MUL = 133, U_DIV = 134,
        F_DIV = 136, U_MOD = 137, F_REM = 140, F_MOD = 141, VECTOR_TIMES_SCALAR = 142, MATRIX_TIMES_MATRIX = 146,
        OUTER_PRODUCT = 147, DOT = 148, U_MUL_EXTENDED = 151, LOGICAL_EQUAL = 164, LOGICAL_NOT_EQUAL = 165,
        LOGICAL_OR = 166, LOGICAL_AND = 167, LOGICAL_NOT = 168, SELECT = 169, I_EQUAL = 170, I_NOT_EQUAL = 171,
        U_GREATER_THAN = 172, S_GREATER_THAN = 173, U_GREATER_THAN_EQUAL = 174, S_GREATER_THAN_EQUAL = 175,
        U_LESS_THAN = 176, S_LESS_THAN = 177, U_LESS_THAN_EQUAL = 178, S_LESS_THAN_EQUAL = 179, F_ORD_EQUAL = 180,
        F_UNORD_NOT_EQUAL = 183, F_ORD_LESS_THAN = 184, F_ORD_GREATER_THAN = 186, F_ORD_LESS_THAN_EQUAL = 188,
        F_ORD_GREATER_THAN_EQUAL = 190, SHIFT_RIGHT_LOGICAL = 194, SHIFT_RIGHT_ARITHMETIC = 195,
        SHIFT_LEFT_LOGICAL = 196, BITWISE_OR = 197, BITWISE_XOR = 198, BITWISE_AND = 199, NOT = 200,
        CONTROL_BARRIER = 224, PHI = 245, LOOP_MERGE = 246, SELECTION_MERGE = 247, LABEL = 248, BRANCH = 249,
        BRANCH_CONDITIONAL = 250, RETURN = 253, RETURN_VALUE = 254,
    }
}

/// Capabilities (section 3.31).
pub mod capability {
    pub const SHADER: u32 = 1;
    pub const FLOAT64: u32 = 10;
    pub const INT64: u32 = 11;
    pub const STORAGE_BUFFER_16BIT: u32 = 4433;
    pub const STORAGE_BUFFER_8BIT: u32 = 4448;
    pub const SIGNED_ZERO_INF_NAN_PRESERVE: u32 = 4466;
    pub const ROUNDING_MODE_RTE: u32 = 4467;
    pub const PHYSICAL_STORAGE_BUFFER: u32 = 5347;
}

/// Storage classes (section 3.7).
pub mod class {
    pub const INPUT: u32 = 1;
    pub const WORKGROUP: u32 = 4;
    pub const FUNCTION: u32 = 7;
    pub const PUSH_CONSTANT: u32 = 9;
    pub const PHYSICAL: u32 = 5349;
}

pub const DECORATION_BLOCK: u32 = 2;
pub const DECORATION_ARRAY_STRIDE: u32 = 6;
pub const DECORATION_BUILT_IN: u32 = 11;
pub const DECORATION_OFFSET: u32 = 35;
pub const DECORATION_NO_CONTRACTION: u32 = 42;
pub const MODE_LOCAL_SIZE: u32 = 17;
pub const MODE_SZINP: u32 = 4461;
pub const MODE_RTE: u32 = 4462;
/// `GLSL.std.450` Fma, the one extended instruction that is ever written.
pub const GLSL_FMA: u32 = 50;

/// Appends one instruction.
pub fn emit(to: &mut Vec<u32>, opcode: u16, operands: &[u32]) {
    to.push((operands.len() as u32 + 1) << 16 | opcode as u32);
    to.extend_from_slice(operands);
}

/// Whether an instruction of a function does more than give a value of its operands, or reads what others write. Calls do
/// not: the writer's routines are functions of their arguments.
pub fn has_effect(opcode: u16) -> bool {
    !matches!(opcode, op::UNDEF | op::EXT_INST | op::FUNCTION_CALL | op::VECTOR_TIMES_SCALAR)
        && !(op::COMPOSITE_CONSTRUCT..op::CONVERT_U_TO_PTR).contains(&opcode)
        && !(op::BITCAST..=op::BITWISE_AND).contains(&opcode)
        && opcode != op::NOT
}

/// UTF-8, zero-terminated, padded to words.
pub fn string_words(s: &str) -> Vec<u32> {
    let mut bytes = s.as_bytes().to_vec();
    bytes.push(0);
    while !bytes.len().is_multiple_of(4) {
        bytes.push(0);
    }
    bytes.chunks(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

/// One function while it is written: its variables stand apart because they must open the first block.
#[derive(Debug, Default)]
pub struct Function {
    pub head: Vec<u32>,
    pub vars: Vec<u32>,
    /// What every later block may use: thread coordinates, arguments.
    pub entry: Vec<u32>,
    pub body: Vec<u32>,
    /// Label of the block being written.
    pub block: Id,
}

/// The module under construction.
#[derive(Debug)]
pub struct Module {
    next: Id,
    pub capabilities: BTreeSet<u32>,
    pub extensions: BTreeSet<&'static str>,
    pub glsl: Id,
    pub interface: Vec<Id>,
    pub decorations: Vec<u32>,
    pub globals: Vec<u32>,
    known: HashMap<Vec<u32>, Id>,
    pub functions: Vec<u32>,
}

impl Default for Module {
    fn default() -> Module {
        Module {
            next: 2,
            capabilities: BTreeSet::new(),
            extensions: BTreeSet::new(),
            glsl: 1,
            interface: Vec::new(),
            decorations: Vec::new(),
            globals: Vec::new(),
            known: HashMap::new(),
            functions: Vec::new(),
        }
    }
}

impl Module {
    pub fn id(&mut self) -> Id {
        self.next += 1;
        self.next - 1
    }

    /// A type (no result type): one per distinct operand list. `salt` keeps decorated twins apart.
    pub fn ty(&mut self, opcode: u16, operands: &[u32], salt: u32) -> (Id, bool) {
        let mut key = vec![opcode as u32, salt];
        key.extend_from_slice(operands);
        if let Some(&id) = self.known.get(&key) {
            return (id, false);
        }
        let id = self.id();
        let mut words = vec![id];
        words.extend_from_slice(operands);
        emit(&mut self.globals, opcode, &words);
        self.known.insert(key, id);
        (id, true)
    }

    /// A constant of type `ty`: one per distinct value.
    pub fn constant(&mut self, opcode: u16, ty: Id, operands: &[u32]) -> Id {
        let mut key = vec![opcode as u32, u32::MAX, ty];
        key.extend_from_slice(operands);
        if let Some(&id) = self.known.get(&key) {
            return id;
        }
        let id = self.id();
        let mut words = vec![ty, id];
        words.extend_from_slice(operands);
        emit(&mut self.globals, opcode, &words);
        self.known.insert(key, id);
        id
    }

    pub fn decorate(&mut self, id: Id, what: &[u32]) {
        let mut words = vec![id];
        words.extend_from_slice(what);
        emit(&mut self.decorations, op::DECORATE, &words);
    }

    pub fn member_offset(&mut self, ty: Id, member: u32, offset: u32) {
        emit(&mut self.decorations, op::MEMBER_DECORATE, &[ty, member, DECORATION_OFFSET, offset]);
    }

    pub fn append(&mut self, f: Function, label: Id) {
        self.functions.extend(f.head);
        emit(&mut self.functions, op::LABEL, &[label]);
        self.functions.extend(f.vars);
        self.functions.extend(f.entry);
        self.functions.extend(f.body);
        emit(&mut self.functions, op::FUNCTION_END, &[]);
    }

    /// The words of the module; `main` is the entry point and `modes` its execution modes (operands after the id).
    pub fn finish(self, main: Id, modes: &[Vec<u32>]) -> Vec<u32> {
        let mut w = vec![0x0723_0203, 0x0001_0500, 0, self.next, 0];
        for &c in &self.capabilities {
            emit(&mut w, op::CAPABILITY, &[c]);
        }
        for e in &self.extensions {
            emit(&mut w, op::EXTENSION, &string_words(e));
        }
        let mut import = vec![self.glsl];
        import.extend(string_words("GLSL.std.450"));
        emit(&mut w, op::EXT_INST_IMPORT, &import);
        // PhysicalStorageBuffer64, GLSL450
        emit(&mut w, op::MEMORY_MODEL, &[5348, 1]);
        let mut entry = vec![5, main];
        entry.extend(string_words("main"));
        entry.extend(&self.interface);
        emit(&mut w, op::ENTRY_POINT, &entry);
        for m in modes {
            let mut words = vec![main];
            words.extend(m);
            emit(&mut w, op::EXECUTION_MODE, &words);
        }
        w.extend(self.decorations);
        w.extend(self.globals);
        w.extend(self.functions);
        w
    }
}
