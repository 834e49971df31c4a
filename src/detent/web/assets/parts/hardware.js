// Decisions that are signed: with a key that a person touches, in the browser.
const signed = async (options) => {
	try {
		const made = await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
		const { id, response } = made.toJSON();
		return { id, authenticatorData: response.authenticatorData, clientDataJSON: response.clientDataJSON, signature: response.signature };
	} catch (refusal) {
		throw new api.ApiError(0, { message: `No key signed this: ${refusal.message}` });
	}
};

// The proof of a decision: the server says what is signed, and the key of the person signs it.
const prove = async (at, body) => {
	const { statement, options } = await api.post(`${at.api}/statement`, body);
	return { statement, credential: await signed(options) };
};

// A new key. The first of a project is trusted on first use; a known approver signs for any other.
const Enrol = ({ project, onClose }) => {
	const [name, setName] = useState(api.access.account || "");
	const [roles, setRoles] = useState("");
	const path = `${api.of(project)}/enrol`;
	const send = async () => {
		const begun = await api.post(path, { name: name.trim(), roles: roles.split(/[\s,]+/).filter(Boolean) });
		let made;
		try {
			made = await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(begun.options) });
		} catch (refusal) {
			throw new api.ApiError(0, { message: `No key was made: ${refusal.message}` });
		}
		const { clientDataJSON, attestationObject } = made.toJSON().response;
		const next = await api.post(path, { id: begun.id, response: { clientDataJSON, attestationObject } });
		if (next.step !== "sign") return next;
		return api.post(path, { id: next.id, proof: { statement: next.statement, credential: await signed(next.options) } });
	};
	return html`<${Ask} title="Enrol a key" label="Enrol" ready=${name.trim()} send=${send} onClose=${onClose}>
		<p class="note">A security key, a fingerprint reader or the like. It goes into approvers.toml, and can sign decisions of this project afterwards.</p>
		<${Field} label="Name of the approver" value=${name} set=${setName} first />
		<${Field} label="Roles" value=${roles} set=${setRoles} optional placeholder="reviewer, security" />
	</${Ask}>`;
};
