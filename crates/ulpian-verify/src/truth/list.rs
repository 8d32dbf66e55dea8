//! The functions whose truth is known, by name.

macro_rules! functions {
    ($($variant:ident $name:literal $arity:literal,)*) => {
        /// A function with a known truth.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Function {
            $(#[doc = $name] $variant,)*
        }
        impl Function {
            pub const ALL: &[Function] = &[$(Function::$variant,)*];
            pub const fn name(self) -> &'static str {
                match self {
                    $(Function::$variant => $name,)*
                }
            }
            pub const fn arity(self) -> usize {
                match self {
                    $(Function::$variant => $arity,)*
                }
            }
        }
    };
}

functions! {
    Div "div" 2,
    Recip "recip" 1,
    Sqrt "sqrt" 1,
    Rsqrt "rsqrt" 1,
    Cbrt "cbrt" 1,
    Exp "exp" 1,
    Exp2 "exp2" 1,
    Exp10 "exp10" 1,
    Expm1 "expm1" 1,
    Log "log" 1,
    Log2 "log2" 1,
    Log10 "log10" 1,
    Log1p "log1p" 1,
    Sin "sin" 1,
    Cos "cos" 1,
    Tan "tan" 1,
    SinPi "sinpi" 1,
    CosPi "cospi" 1,
    Asin "asin" 1,
    Acos "acos" 1,
    Atan "atan" 1,
    Sinh "sinh" 1,
    Cosh "cosh" 1,
    Tanh "tanh" 1,
    Asinh "asinh" 1,
    Acosh "acosh" 1,
    Atanh "atanh" 1,
    Erf "erf" 1,
    Erfc "erfc" 1,
    Erfinv "erfinv" 1,
    Lgamma "lgamma" 1,
    Digamma "digamma" 1,
    Sigmoid "sigmoid" 1,
    LogSigmoid "log_sigmoid" 1,
    Softplus "softplus" 1,
    Silu "silu" 1,
    Gelu "gelu" 1,
    GeluTanh "gelu_tanh" 1,
    QuickGelu "quick_gelu" 1,
    Mish "mish" 1,
    Elu "elu" 1,
    Selu "selu" 1,
    Celu "celu" 1,
    Pow "pow" 2,
    Atan2 "atan2" 2,
    Hypot "hypot" 2,
    Fmod "fmod" 2,
    Remainder "remainder" 2,
    LogAddExp "logaddexp" 2,
    Xlogy "xlogy" 2,
}

impl Function {
    /// The function called `name`, underscores aside; `reciprocal` and `gelu_erf` are known too.
    pub fn named(name: &str) -> Option<Function> {
        let plain = |s: &str| s.replace('_', "");
        let name = match plain(name).as_str() {
            "reciprocal" => "recip".into(),
            "geluerf" => "gelu".into(),
            "logsumexp2" => "logaddexp".into(),
            other => other.to_string(),
        };
        Function::ALL.iter().copied().find(|f| plain(f.name()) == name)
    }
}
