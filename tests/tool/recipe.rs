//! Recipes: rules in order, renames, stacks; resources and identities.

use ninfer_artifact::{Artifact, Kind};
use safetensors::Dtype;
use tempfile::TempDir;

use crate::support::{call, checkpoint, f32_bytes, fail, folder, path, succeed};

/// A folder with a checkpoint of four matrices and a vector.
fn setting() -> TempDir {
    let folder = folder();
    let values = |rows: usize, seed: f32| {
        f32_bytes(&(0..rows * 64).map(|i| (i as f32 + seed).sin()).collect::<Vec<_>>())
    };
    let (q, k, v, other) = (values(2, 0.1), values(1, 0.2), values(3, 0.3), values(2, 0.4));
    checkpoint(
        &path(&folder, "in.safetensors"),
        &[
            ("model.q.weight", Dtype::F32, &[2, 64], &q),
            ("model.k.weight", Dtype::F32, &[1, 64], &k),
            ("model.v.weight", Dtype::F32, &[3, 64], &v),
            ("model.wide.weight", Dtype::F32, &[1, 128], &other),
            ("model.norm", Dtype::F32, &[64], &k),
        ],
    );
    folder
}

/// Packs with this recipe; gives the objects as name, format and shape.
fn pack(folder: &TempDir, recipe: &str, arguments: &[&str]) -> Vec<(String, String, Vec<u64>)> {
    let (input, out, file) =
        (path(folder, "in.safetensors"), path(folder, "out.ninfer"), path(folder, "r.toml"));
    std::fs::write(&file, recipe).unwrap();
    succeed(&[&["pack", &input, "-o", &out, "--recipe", &file, "-q"][..], arguments].concat());
    succeed(&["verify", &out]);
    let bytes = std::fs::read(out).unwrap();
    let artifact = Artifact::new(&bytes).unwrap();
    let objects = artifact.directory().objects().iter();
    objects
        .map(|object| match object.kind() {
            Kind::Tensor { shape, plan } => (object.name().into(), plan.format().to_string(), shape.clone()),
            Kind::Resource { .. } => (object.name().into(), "resource".into(), vec![object.bytes()]),
        })
        .collect()
}

fn object(name: &str, format: &str, shape: &[u64]) -> (String, String, Vec<u64>) {
    (name.into(), format.into(), shape.into())
}

#[test]
fn the_first_rule_with_an_answer_decides() {
    let recipe = r#"
        default = "Q6G64_F16S"
        [[rule]]
        match = "model.*"
        rename = { from = "model.", to = "m/" }
        [[rule]]
        match = "*.q.*"
        format = "W8G32_F16S"
        [[rule]]
        match = "*.{q,v}.*"
        format = "BF16"
        [[rule]]
        match = "*.wide.*"
        skip = true
    "#;
    let folder = setting();
    // sin() is exact in no BF16: the flag wins over the recipe.
    let objects = pack(&folder, recipe, &["--assign", "*.v.*=FP32"]);
    let expected = [
        object("m/k.weight", "Q6G64_F16S", &[1, 64]),
        object("m/norm", "FP32", &[64]),
        object("m/q.weight", "W8G32_F16S", &[2, 64]),
        object("m/v.weight", "FP32", &[3, 64]),
    ];
    assert_eq!(objects, expected);
}

#[test]
fn matrices_are_stacked_by_rows() {
    let folder = setting();
    let recipe = r#"
        [[stack]]
        name = "qkv"
        sources = ["model.q.weight", "model.k.weight", "model.v.weight"]
        format = "Q5G64_F16S"
    "#;
    let objects = pack(&folder, recipe, &[]);
    assert!(objects.contains(&object("qkv", "Q5G64_F16S", &[6, 64])), "{objects:?}");
    assert_eq!(objects.len(), 3);

    // The stack is what the codec makes of the parts packed alone.
    let stacked = std::fs::read(path(&folder, "out.ninfer")).unwrap();
    let (input, alone) = (path(&folder, "in.safetensors"), path(&folder, "alone.ninfer"));
    succeed(&["pack", &input, "-o", &alone, "--default", "Q5G64_F16S", "-q"]);
    let alone = std::fs::read(alone).unwrap();
    let (stacked, alone) = (Artifact::new(&stacked).unwrap(), Artifact::new(&alone).unwrap());
    let parts = ["q", "k", "v"]
        .map(|name| alone.tensor(alone.object(&format!("model.{name}.weight")).unwrap()).unwrap());
    let whole = stacked.payload(stacked.object("qkv").unwrap());
    let mut expected = vec![0; whole.len()];
    ninfer_codec::stack(&parts, &mut expected).unwrap();
    assert!(whole == expected);
}

#[test]
fn ready_made_words_are_stacked_where_the_divisors_agree() {
    let folder = folder();
    let (codes, scales) = ([0x21; 128 * 32], [0x38; 128 * 4]);
    let (one, two) = (f32_bytes(&[1.0]), f32_bytes(&[2.0]));
    let write = |divisor: &[u8]| {
        checkpoint(
            &path(&folder, "in.safetensors"),
            &[
                ("a.weight_packed", Dtype::U8, &[128, 32], &codes),
                ("a.weight_scale", Dtype::F8_E4M3, &[128, 4], &scales),
                ("a.weight_global_scale", Dtype::F32, &[1], &one),
                ("b.weight_packed", Dtype::U8, &[128, 32], &codes),
                ("b.weight_scale", Dtype::F8_E4M3, &[128, 4], &scales),
                ("b.weight_global_scale", Dtype::F32, &[1], divisor),
            ],
        );
    };
    let recipe = "[[stack]]\nname = \"ab\"\nsources = [\"a.weight\", \"b.weight\"]\n";
    write(&one);
    assert_eq!(pack(&folder, recipe, &[]), [object("ab", "NVFP4", &[256, 64])]);
    write(&two);
    let (input, out, file) =
        (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"), path(&folder, "r.toml"));
    let message = fail(1, &["pack", &input, "-o", &out, "--recipe", &file]);
    assert!(
        message.contains("\"b.weight\" has divisor word 0x40000000, \"a.weight\" has 0x3f800000"),
        "{message}"
    );
}

#[test]
fn resources_and_identities() {
    let folder = setting();
    let tokenizer = path(&folder, "tokenizer.json");
    std::fs::write(&tokenizer, "{\"a\": 1}").unwrap();
    let resource = format!("tokenizer={tokenizer}");
    let arguments = ["--resource", &resource, "--model-id", "my model", "--weights-id", "v7"];
    let objects = pack(&folder, "", &arguments);
    assert_eq!(objects.last().unwrap(), &object("tokenizer", "resource", &[8]));
    let bytes = std::fs::read(path(&folder, "out.ninfer")).unwrap();
    let artifact = Artifact::new(&bytes).unwrap();
    assert_eq!(artifact.payload(artifact.object("tokenizer").unwrap()), b"{\"a\": 1}");
    let identity = artifact.directory().identity();
    assert_eq!((identity.model_id.as_str(), identity.weights_id.as_str()), ("my model", "v7"));

    let unpacked = call(&["unpack", &path(&folder, "out.ninfer"), "-o", &path(&folder, "back.safetensors")]);
    assert_eq!(unpacked.code, Some(0));
    assert_eq!(unpacked.stderr, "note: resource \"tokenizer\" has no place in a safetensors file\n");

    std::fs::write(&tokenizer, "").unwrap();
    let (input, out) = (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"));
    assert!(fail(1, &["pack", &input, "-o", &out, "--resource", &resource]).contains("is empty"));
    assert!(fail(3, &["pack", &input, "-o", &out, "--resource", "x=/none/such"]).contains("/none/such"));
    for slip in ["x", "x=", &format!("={tokenizer}")] {
        assert!(fail(2, &["pack", &input, "-o", &out, "--resource", slip]).contains("NAME=FILE"));
    }
    for option in ["--model-id", "--weights-id"] {
        assert!(fail(2, &["pack", &input, "-o", &out, option, ""]).contains(option));
    }
}

#[test]
fn slips_in_a_recipe_are_named() {
    let folder = setting();
    let (input, out, file) =
        (path(&folder, "in.safetensors"), path(&folder, "out.ninfer"), path(&folder, "r.toml"));
    for (code, recipe, part) in [
        (2, "[[rule]]\nmatch = 'x'\nformat = 'Q4'", "rule 1 (x): there is no format \"Q4\""),
        (2, "[[rule]]\nmatch = 'x'\n", "give the rule a format"),
        (2, "[[rule]]\nmatch = '*'\nskip = true\nformat = 'BF16'", "either format or skip"),
        (2, "[[rule]]\nmatch = 'none*'\nskip = true", "recipe, rule 1 (none*) matches no tensor"),
        (2, "[[rule]]\nmatch = '*'\nrename = { from = 'zz', to = '' }", "does not contain \"zz\""),
        (2, "\n\n[[rule]]\nmatch = 'x'\nformats = 'BF16'", "line 5"),
        (2, "default = 'I32'", "cannot be made from float values"),
        (2, "[[stack]]\nname = 's'\nsources = ['no']", "there is no tensor \"no\""),
        (2, "[[stack]]\nname = 's'\nsources = []", "at least one source"),
        (2, "[[stack]]\nname = 's'\nsources = ['model.q.weight', 'model.q.weight']", "stacked twice"),
        (
            1,
            "[[stack]]\nname = 's'\nsources = ['model.q.weight', 'model.wide.weight']",
            "has 128 columns, \"model.q.weight\" has 64",
        ),
        (1, "[[stack]]\nname = 's'\nsources = ['model.q.weight', 'model.norm']", "only matrices are stacked"),
        (
            1,
            "[[stack]]\nname = 'model.norm'\nsources = ['model.q.weight']",
            "two objects are named \"model.norm\"",
        ),
        (1, "[[rule]]\nmatch = '*'\nskip = true", "no tensor is left"),
    ] {
        std::fs::write(&file, recipe).unwrap();
        let message = fail(code, &["pack", &input, "-o", &out, "--recipe", &file]);
        assert!(message.contains(part), "{recipe}\n{message}");
    }
    assert!(fail(3, &["pack", &input, "-o", &out, "--recipe", "/none/such"]).contains("/none/such"));
}
