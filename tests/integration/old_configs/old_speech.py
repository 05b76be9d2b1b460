"""What the configs of speech here share."""

from open_seq2seq.data import Speech2TextDataLayer


def speech(name, is_train=False, **more):
    params = {
        "vocab_file": "speech/alphabet.txt",
        "dataset_files": ["speech/" + name + ".csv"],
        "shuffle": is_train,
    }
    params.update(more)
    return {"data_layer": Speech2TextDataLayer, "data_layer_params": params}
